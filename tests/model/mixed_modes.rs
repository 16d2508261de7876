//! Workers of different modes on one queue and one ledger, as during a deployment that changes the mode.

use std::sync::LazyLock;

use crate::checked::Checked;
use crate::design::{ANY, Design, Fault, Mode, Notifications};
use crate::properties::{
    a_second_email_follows_a_broken_attempt_not_heard_of,
    a_second_email_follows_an_attempt_in_doubt_not_heard_of, no_email_is_lost, no_second_email,
    what_is_called_sent_was_sent, what_ses_has_told_stands,
};
use crate::state::InDoubt;

const RESEND: Mode = Mode::Lease(InDoubt::Resend);
const HOLD: Mode = Mode::Lease(InDoubt::Hold);

const WITH_RESEND: Design = Design::mixed(Mode::Transaction(InDoubt::Resend), RESEND);
const WITH_HOLD: Design = Design::mixed(Mode::Transaction(InDoubt::Hold), HOLD);
const LEASES: Design = Design::mixed(RESEND, HOLD);
const BOTH: Design = Design::mixed(Mode::Transaction(InDoubt::Resend), HOLD);
const MIXES: [Design; 4] = [WITH_RESEND, WITH_HOLD, LEASES, BOTH];

static CASES: LazyLock<[Checked; 4]> =
    LazyLock::new(|| Checked::each(MIXES.map(|mix| mix.faults(2, ANY))));

#[test]
fn every_event_gets_its_email_or_is_held_in_sight() {
    CASES.iter().for_each(|case| case.assert(no_email_is_lost));
}

#[test]
fn a_second_email_leaves_only_after_a_broken_attempt_that_ses_had_not_told_of() {
    let [with_resend, with_hold, leases, both] = &*CASES;
    for case in [with_resend, with_hold, both] {
        case.assert(a_second_email_follows_a_broken_attempt_not_heard_of);
    }
    leases.assert(a_second_email_follows_an_attempt_in_doubt_not_heard_of);
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
    for mix in MIXES {
        let case = Checked::new(mix.copies(3));
        case.assert(no_email_is_lost);
        case.assert(no_second_email);
        case.assert_never_stuck();
    }
}

#[test]
fn one_message_and_a_notification_in_time_make_one_email_whatever_fails() {
    for mix in MIXES {
        let in_time = mix.one_message().notifications(Notifications::InTime);
        let case = Checked::new(in_time.faults(3, ANY));
        case.assert(no_email_is_lost);
        case.assert(no_second_email);
    }
}

#[test]
fn an_operator_loses_nothing_in_any_mix() {
    for mix in [WITH_HOLD, LEASES] {
        let case = Checked::new(mix.faults(1, ANY).decisions(1));
        case.assert(no_email_is_lost);
        case.assert(what_ses_has_told_stands);
        case.assert_never_stuck();
    }
}

/// `hold` is kept as far as the least careful worker on the ledger keeps it.
#[test]
fn hold_is_not_kept_by_a_neighbour_in_transaction_mode() {
    let in_time = WITH_HOLD.notifications(Notifications::InTime);
    Checked::new(in_time.faults(1, &[Fault::Crash])).assert_broken(no_second_email);
}
