//! Lease mode, with both ends of what is in doubt: sent again, or held.

use std::sync::LazyLock;

use crate::checked::Checked;
use crate::design::{ANY, Design, Fault, Mode, Notifications};
use crate::properties::{
    a_second_email_follows_a_crash_or_a_lost_answer,
    a_second_email_follows_an_attempt_in_doubt_not_heard_of, no_email_is_lost, no_second_email,
    nothing_unsent_is_held, what_is_called_sent_was_sent, what_ses_has_told_stands,
};
use crate::state::InDoubt;

const RESEND: Design = Design::of(Mode::Lease(InDoubt::Resend));
const HOLD: Design = Design::of(Mode::Lease(InDoubt::Hold));

static RESENDING: LazyLock<[Checked; 3]> = LazyLock::new(|| {
    Checked::each([
        RESEND.faults(2, ANY).copies(1),
        RESEND.one_message().faults(3, ANY),
        RESEND.two_events().faults(1, ANY).copies(1),
    ])
});

static HOLDING: LazyLock<[Checked; 4]> = LazyLock::new(|| {
    Checked::each([
        HOLD.faults(3, ANY).copies(1),
        HOLD.one_message().faults(3, ANY).copies(2),
        HOLD.two_events().faults(2, ANY),
        HOLD.notifications(Notifications::None)
            .faults(3, ANY)
            .copies(1),
    ])
});

#[test]
fn with_resend_every_event_gets_its_email() {
    RESENDING
        .iter()
        .for_each(|case| case.assert(no_email_is_lost));
}

#[test]
fn with_resend_a_second_email_leaves_only_after_an_attempt_in_doubt_that_ses_had_not_told_of() {
    let excused = a_second_email_follows_an_attempt_in_doubt_not_heard_of;
    RESENDING.iter().for_each(|case| case.assert(excused));
}

#[test]
fn with_resend_nothing_is_stuck_for_ever() {
    RESENDING.iter().for_each(Checked::assert_never_stuck);
}

#[test]
fn with_hold_every_event_gets_its_email_or_its_message_stays_on_a_queue() {
    HOLDING
        .iter()
        .for_each(|case| case.assert(no_email_is_lost));
}

#[test]
fn with_hold_no_second_email_leaves_whatever_fails_and_whenever_ses_tells() {
    HOLDING.iter().for_each(|case| case.assert(no_second_email));
}

#[test]
fn with_hold_nothing_is_stuck_for_ever() {
    HOLDING.iter().for_each(Checked::assert_never_stuck);
}

#[test]
fn what_ses_has_told_is_never_forgotten() {
    let cases = RESENDING.iter().chain(&*HOLDING);
    cases.for_each(|case| case.assert(what_ses_has_told_stands));
}

#[test]
fn nothing_is_called_sent_that_was_not() {
    let cases = RESENDING.iter().chain(&*HOLDING);
    cases.for_each(|case| case.assert(what_is_called_sent_was_sent));
}

#[test]
fn duplicates_alone_never_make_a_second_email() {
    for design in [RESEND, HOLD] {
        let case = Checked::new(design.copies(3));
        case.assert(no_email_is_lost);
        case.assert(no_second_email);
        case.assert(nothing_unsent_is_held);
        case.assert_never_stuck();
    }
}

/// What transaction mode can't do: the row in doubt outlives its worker, and holds up every message of the event.
#[test]
fn with_resend_a_second_email_takes_a_notification_later_than_in_doubt_wait() {
    let in_time = RESEND.notifications(Notifications::InTime);
    let case = Checked::new(in_time.faults(3, ANY).copies(1));
    case.assert(no_email_is_lost);
    case.assert(no_second_email);
    case.assert_never_stuck();
}

/// Its message is acknowledged, for it did leave. Another message about the event finds a row in doubt.
#[test]
fn an_email_that_was_not_settled_before_the_deadline_is_in_doubt_though_its_worker_knew() {
    let cut_off = RESEND.faults(2, &[Fault::LostConnection]);
    Checked::new(cut_off).assert_broken(a_second_email_follows_a_crash_or_a_lost_answer);
}

/// The price of `hold`: nobody can know whether a worker died before or after SES had the email.
#[test]
fn with_hold_an_email_that_never_left_is_held_too() {
    let crash = HOLD.faults(1, &[Fault::Crash]);
    Checked::new(crash).assert_broken(nothing_unsent_is_held);
}
