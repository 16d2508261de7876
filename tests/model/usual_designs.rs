//! The usual designs, and how each fails: all but the last with nothing going wrong, since two messages about one
//! event, or one refusal of SES, are everyday.

use crate::checked::Checked;
use crate::design::{Design, Fault, Mode, Notifications};
use crate::properties::{no_email_is_lost, no_second_email};
use crate::state::InDoubt;

#[test]
fn a_claim_that_is_committed_first_and_never_released_loses_an_email() {
    Checked::new(Design::of(Mode::ClaimAndKeep)).assert_broken(no_email_is_lost);
}

#[test]
fn sending_before_the_claim_sends_a_second_email() {
    Checked::new(Design::of(Mode::SendThenClaim)).assert_broken(no_second_email);
}

#[test]
fn checking_and_marking_in_two_steps_sends_a_second_email() {
    Checked::new(Design::of(Mode::CheckThenMark)).assert_broken(no_second_email);
}

#[test]
fn a_lock_outside_the_database_that_expires_sends_a_second_email() {
    Checked::new(Design::of(Mode::ExpiringLock)).assert_broken(no_second_email);
}

/// The best of them, and what `feedback` completes.
#[test]
fn claim_and_send_in_one_transaction_without_feedback_sends_a_second_email_after_a_crash() {
    let design = Design::of(Mode::Transaction(InDoubt::Resend)).notifications(Notifications::None);
    Checked::new(design).assert(no_second_email);
    Checked::new(design.faults(1, &[Fault::Crash])).assert_broken(no_second_email);
}
