//! What `feedback` is for: the same designs with it and without, one message, and one thing that goes wrong between
//! SES's acceptance and the commit.

use crate::checked::Checked;
use crate::design::{ANY, Design, Fault, Mode, Notifications};
use crate::properties::{no_email_is_lost, no_second_email};
use crate::state::InDoubt;

const TRANSACTION: Design = Design::of(Mode::Transaction(InDoubt::Resend));
const RESEND: Design = Design::of(Mode::Lease(InDoubt::Resend));

fn assert_that_feedback_makes_the_difference(design: Design) {
    Checked::new(design.notifications(Notifications::InTime)).assert(no_second_email);
    Checked::new(design.notifications(Notifications::None)).assert_broken(no_second_email);
}

#[test]
fn without_feedback_a_crash_after_ses_has_accepted_makes_a_second_email() {
    let crash = TRANSACTION.one_message().faults(1, &[Fault::Crash]);
    assert_that_feedback_makes_the_difference(crash);
}

#[test]
fn without_feedback_a_lost_answer_of_ses_makes_a_second_email() {
    let lost_answer = TRANSACTION.one_message().faults(1, &[Fault::LostAnswer]);
    assert_that_feedback_makes_the_difference(lost_answer);
}

#[test]
fn without_feedback_a_lease_that_runs_out_makes_a_second_email() {
    let crash = RESEND.one_message().faults(1, &[Fault::Crash]);
    assert_that_feedback_makes_the_difference(crash);
}

#[test]
fn even_without_feedback_no_email_is_lost_and_nothing_is_stuck() {
    for design in [TRANSACTION, RESEND] {
        let case = Checked::new(design.notifications(Notifications::None).faults(2, ANY));
        case.assert(no_email_is_lost);
        case.assert_never_stuck();
    }
}
