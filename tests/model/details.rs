//! Details of the protocol that look like matters of taste. For each: how an email leaves twice, or a claim is stuck,
//! where it is done the other way.

use crate::checked::Checked;
use crate::design::{
    ANY, Design, DoubtRead, DoubtRow, Fault, Fences, Leases, Mode, Notifications, Sweep,
};
use crate::properties::{a_second_email_follows_an_attempt_in_doubt_not_heard_of, no_second_email};
use crate::state::InDoubt;

const TRANSACTION: Mode = Mode::Transaction(InDoubt::Resend);
const RESEND: Mode = Mode::Lease(InDoubt::Resend);

const fn a_lost_answer_told_of_in_time(design: Design) -> Design {
    design
        .notifications(Notifications::InTime)
        .faults(1, &[Fault::LostAnswer])
}

/// The message that left the row is kept back by SQS, so the row lets it through: however it comes back, it is tried
/// again. A copy of it that SQS delivers before the wait is over is tried too. Holding it up as well would close
/// that, at the price of a message that is brought back early, by hand say, and is not tried.
#[test]
fn the_in_doubt_row_lets_the_message_that_wrote_it_through_and_so_a_copy_of_it() {
    let others = a_lost_answer_told_of_in_time(Design::of(TRANSACTION).one_message());
    Checked::new(others).assert(no_second_email);
    Checked::new(others.copies(1)).assert_broken(no_second_email);

    let everybody = Design {
        doubt_row: DoubtRow::Everybody,
        ..others.copies(1)
    };
    Checked::new(everybody).assert(no_second_email);
}

/// An `INSERT` that has waited for its neighbour goes on with the snapshot from before the wait (read committed), and
/// so doesn't see the row that the neighbour has committed meanwhile. A statement after it does.
#[test]
fn the_in_doubt_row_must_be_read_after_the_claim_is_won() {
    let afterwards = a_lost_answer_told_of_in_time(Design::of(TRANSACTION));
    Checked::new(afterwards).assert(no_second_email);

    let in_the_insert = Design {
        doubt_read: DoubtRead::InTheInsert,
        ..afterwards
    };
    Checked::new(in_the_insert).assert_broken(no_second_email);
}

/// The claim of lease mode, where it is one statement, can't do that.
#[test]
fn lease_mode_must_not_overlook_the_in_doubt_row_of_a_neighbour_in_transaction_mode() {
    let afterwards = a_lost_answer_told_of_in_time(Design::mixed(TRANSACTION, RESEND));
    Checked::new(afterwards).assert(no_second_email);

    let in_the_insert = Design {
        doubt_read: DoubtRead::InTheInsert,
        ..afterwards
    };
    Checked::new(in_the_insert).assert_broken(no_second_email);
}

/// A release that comes late must not free a key that somebody else has claimed since.
#[test]
fn a_release_must_carry_the_number_of_its_attempt() {
    let lost_release = Design::of(RESEND).faults(1, &[Fault::LostConnection]);
    let without_numbers = Design {
        fences: Fences::None,
        ..lost_release
    };
    Checked::new(without_numbers)
        .assert_broken(a_second_email_follows_an_attempt_in_doubt_not_heard_of);
}

/// A row is deleted when nothing was sent, and its number with it: the next row must not begin with the same one.
#[test]
fn the_number_of_an_attempt_must_not_come_back_after_its_row_was_deleted() {
    let lost_release = Design::of(RESEND).faults(1, &[Fault::LostConnection]);
    let from_one = Design {
        fences: Fences::FromOne,
        ..lost_release
    };
    Checked::new(from_one).assert_broken(a_second_email_follows_an_attempt_in_doubt_not_heard_of);
}

#[test]
fn a_lease_must_outlive_its_invocation() {
    let short = Design {
        leases: Leases::MayEndBefore,
        ..Design::of(RESEND)
    };
    Checked::new(short).assert_broken(a_second_email_follows_an_attempt_in_doubt_not_heard_of);
}

/// A worker dies before SES has the email, so that no notification comes, and its message then goes to the
/// dead-letter queue, so that no claim comes either.
#[test]
fn a_row_in_doubt_must_not_wait_for_a_message_that_does_not_come_back() {
    for mode in [RESEND, Mode::Lease(InDoubt::Hold)] {
        let swept = Design::of(mode).one_message().faults(2, ANY);
        Checked::new(swept).assert_never_stuck();

        let unswept = Design {
            sweep: Sweep::Never,
            ..swept
        };
        Checked::new(unswept).assert_stuck();
    }
}
