//! Transaction mode: what it keeps, and the gap that it leaves.

use std::sync::LazyLock;

use crate::checked::Checked;
use crate::design::{ANY, Design, Fault, Mode, Notifications};
use crate::properties::{
    a_second_email_follows_a_broken_attempt_not_heard_of,
    a_second_email_follows_a_crash_or_a_lost_answer, no_email_is_lost, no_second_email,
    what_is_called_sent_was_sent, what_ses_has_told_stands,
};
use crate::state::InDoubt;

const TRANSACTION: Design = Design::of(Mode::Transaction(InDoubt::Resend));
const IN_TIME: Design = TRANSACTION.notifications(Notifications::InTime);

static CASES: LazyLock<[Checked; 3]> = LazyLock::new(|| {
    Checked::each([
        TRANSACTION.faults(2, ANY).copies(1),
        TRANSACTION.one_message().faults(3, ANY),
        TRANSACTION.two_events().faults(2, ANY),
    ])
});

#[test]
fn every_event_gets_its_email() {
    CASES.iter().for_each(|case| case.assert(no_email_is_lost));
}

#[test]
fn a_second_email_leaves_only_after_a_broken_attempt_that_ses_had_not_told_of() {
    let excused = a_second_email_follows_a_broken_attempt_not_heard_of;
    CASES.iter().for_each(|case| case.assert(excused));
}

#[test]
fn what_ses_has_told_is_never_forgotten() {
    CASES
        .iter()
        .for_each(|case| case.assert(what_ses_has_told_stands));
}

#[test]
fn nothing_is_called_sent_that_was_not() {
    CASES
        .iter()
        .for_each(|case| case.assert(what_is_called_sent_was_sent));
}

#[test]
fn nothing_is_stuck_for_ever() {
    CASES.iter().for_each(Checked::assert_never_stuck);
}

#[test]
fn duplicates_alone_never_make_a_second_email() {
    let case = Checked::new(TRANSACTION.copies(3));
    case.assert(no_email_is_lost);
    case.assert(no_second_email);
    case.assert_never_stuck();
}

#[test]
fn one_message_and_a_notification_in_time_make_one_email_whatever_fails() {
    let case = Checked::new(IN_TIME.one_message().faults(3, ANY));
    case.assert(no_email_is_lost);
    case.assert(no_second_email);
}

/// The mark holds up every other message of the event; the one that left it is kept back by SQS.
#[test]
fn lost_answers_and_a_notification_in_time_make_one_email_however_many_messages() {
    let case = Checked::new(IN_TIME.faults(3, &[Fault::LostAnswer]));
    case.assert(no_email_is_lost);
    case.assert(no_second_email);
}

/// Postgres rolls the claim back when its worker dies, and then nothing is left that could hold up another message
/// about the same event, which need not wait for any timer. Lease mode has no such gap.
#[test]
fn a_crash_lets_a_second_message_send_before_ses_can_tell() {
    let crash = IN_TIME.faults(1, &[Fault::Crash]);
    Checked::new(crash).assert_broken(no_second_email);
}

/// The same without any crash, and though SES's answer arrives: an attempt can outlive its claim.
#[test]
fn a_transaction_lost_during_the_send_lets_a_second_message_send() {
    let lost = IN_TIME.faults(1, &[Fault::LostConnection]);
    Checked::new(lost).assert_broken(a_second_email_follows_a_crash_or_a_lost_answer);
}
