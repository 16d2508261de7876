//! An event that is held: an operator decides, at any time after, and perhaps wrongly.

use std::sync::LazyLock;

use crate::checked::Checked;
use crate::design::{ANY, Design, Fault, Mode};
use crate::properties::{
    a_second_email_is_an_operators_choice, no_email_is_lost, no_second_email,
    nothing_unsent_is_taken_for_sent, what_is_called_sent_was_sent, what_ses_has_told_stands,
};
use crate::state::InDoubt;

const HOLD: Design = Design::of(Mode::Lease(InDoubt::Hold));
const ONE_CRASH: Design = HOLD.one_message().faults(1, &[Fault::Crash]);

static CASES: LazyLock<[Checked; 2]> = LazyLock::new(|| {
    Checked::each([
        HOLD.faults(2, ANY).decisions(1),
        HOLD.one_message().faults(3, ANY).decisions(2),
    ])
});

/// Unless one has decided that it was sent.
#[test]
fn an_event_that_is_held_can_always_be_sent_by_an_operator() {
    CASES.iter().for_each(|case| case.assert(no_email_is_lost));
}

#[test]
fn each_decision_to_send_again_makes_at_most_one_email_more() {
    let excused = a_second_email_is_an_operators_choice;
    CASES.iter().for_each(|case| case.assert(excused));
}

#[test]
fn no_decision_undoes_what_ses_has_told() {
    CASES
        .iter()
        .for_each(|case| case.assert(what_ses_has_told_stands));
}

#[test]
fn but_for_an_operator_nothing_is_called_sent_that_was_not() {
    CASES
        .iter()
        .for_each(|case| case.assert(what_is_called_sent_was_sent));
}

/// Not even where the row is deleted, and its message then forgotten in the dead-letter queue.
#[test]
fn nothing_waits_for_an_operator() {
    CASES.iter().for_each(Checked::assert_never_stuck);
}

/// SES had the email, and tells so later.
#[test]
fn a_decision_to_send_again_can_make_a_second_email() {
    Checked::new(ONE_CRASH).assert(no_second_email);
    Checked::new(ONE_CRASH.decisions(1)).assert_broken(no_second_email);
}

/// The worker had died before SES had the email.
#[test]
fn a_decision_that_it_was_sent_can_leave_it_unsent() {
    Checked::new(ONE_CRASH.decisions(1)).assert_broken(nothing_unsent_is_taken_for_sent);
}
