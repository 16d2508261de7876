//! Details of the protocol that look like matters of taste. For each: how an email leaves twice, or a claim is stuck,
//! where it is done the other way.

use crate::checked::Checked;
use crate::choices::{
    Begins, Fences, Held, LastRead, Leases, MarkRead, MarkStops, MarkedRows, Marks, Releases,
    Retries, Settles, Sweep, TakeOvers,
};
use crate::design::{ANY, Design, Fault, Mode, Notifications};
use crate::properties::{
    Property, a_second_email_follows_an_attempt_in_doubt_not_heard_of, no_email_is_lost,
    no_second_email, nothing_unsent_is_held, what_ses_has_told_stands,
};
use crate::state::InDoubt;

const TRANSACTION: Mode = Mode::Transaction(InDoubt::Resend);
const RESEND: Mode = Mode::Lease(InDoubt::Resend);
const HOLD: Mode = Mode::Lease(InDoubt::Hold);

const fn a_lost_answer_told_of_in_time(design: Design) -> Design {
    design
        .notifications(Notifications::InTime)
        .faults(1, &[Fault::LostAnswer])
}

/// What is built keeps the promise, and done the other way it is broken.
fn assert_matters(property: Property, built: Design, other_way: Design) {
    Checked::new(built).assert(property);
    Checked::new(other_way).assert_broken(property);
}

/// The message that left the mark is kept back by SQS, so the mark lets it through: however it comes back, it is tried
/// again. A copy of it that SQS delivers before the wait is over is tried too. Holding it up as well would close
/// that, at the price of a message that is brought back early, by hand say, and is not tried.
#[test]
fn the_mark_lets_the_message_that_left_it_through_and_so_a_copy_of_it() {
    let others = a_lost_answer_told_of_in_time(Design::of(TRANSACTION).one_message());
    Checked::new(others).assert(no_second_email);
    Checked::new(others.copies(1)).assert_broken(no_second_email);

    let everybody = Design {
        mark_stops: MarkStops::Everybody,
        ..others.copies(1)
    };
    Checked::new(everybody).assert(no_second_email);
}

/// An `INSERT` that has waited for its neighbour goes on with the snapshot from before the wait (read committed), and
/// so doesn't see the mark that the neighbour has committed meanwhile. A statement after it does.
#[test]
fn the_mark_must_be_read_after_the_claim_is_won() {
    let afterwards = a_lost_answer_told_of_in_time(Design::of(TRANSACTION));
    let in_the_insert = Design {
        mark_read: MarkRead::InTheInsert,
        ..afterwards
    };

    assert_matters(no_second_email, afterwards, in_the_insert);
}

/// The claim of lease mode is one statement, and can't do that: it takes one more, after the claim is committed.
#[test]
fn lease_mode_must_read_the_marks_again_after_its_claim() {
    let afterwards = Design {
        marks: Marks::OutliveTheInvocation,
        ..a_lost_answer_told_of_in_time(Design::mixed(TRANSACTION, RESEND))
    };
    let in_the_insert = Design {
        mark_read: MarkRead::InTheInsert,
        ..afterwards
    };

    assert_matters(no_second_email, afterwards, in_the_insert);
}

/// Where `IN_DOUBT_WAIT` is shorter than an invocation, a mark can be left and be over between the claim, which waits
/// for its neighbour, and the last read; SES has told of the neighbour's email meanwhile. Then only the row says so.
#[test]
fn the_row_must_be_read_with_the_marks_before_the_send() {
    let with_the_row = a_lost_answer_told_of_in_time(Design::mixed(TRANSACTION, RESEND));
    let marks_alone = Design {
        last_read: LastRead::Marks,
        ..with_the_row
    };

    assert_matters(no_second_email, with_the_row, marks_alone);
}

/// A row that was taken over, and whose transaction is lost, is as it was: overdue. Only the mark tells that it was
/// tried again, and that SES may yet tell.
#[test]
fn transaction_mode_must_heed_a_mark_beside_a_row_that_it_may_take_over() {
    let lost_take_over = Design {
        begins: Begins::WithALostTakeOver,
        notifications: Notifications::InTime,
        marks: Marks::OutliveTheInvocation,
        ..Design::mixed(TRANSACTION, RESEND)
    };
    let taken_over = Design {
        marked_rows: MarkedRows::AreTakenOver,
        ..lost_take_over
    };

    assert_matters(no_second_email, lost_take_over, taken_over);
}

/// A claim may be committed, and its answer lost. Sent again with its number it finds its own row; with another it
/// finds a live lease that nobody holds, and an email that could have left at once is held.
#[test]
fn a_claim_that_is_sent_again_must_keep_its_number() {
    let lost_reply = Design::of(HOLD)
        .one_message()
        .faults(1, &[Fault::LostReply]);
    let new_number = Design {
        retries: Retries::TakeANewNumber,
        ..lost_reply
    };

    assert_matters(nothing_unsent_is_held, lost_reply, new_number);
}

/// One statement claims for a whole batch, and can be numbered once. Then two messages of it about one event must not
/// both take the row for their own.
#[test]
fn of_two_messages_about_one_event_in_one_batch_only_one_must_win() {
    let batch = Design {
        fences: Fences::OfTheBatch,
        ..Design::of(RESEND)
    };
    Checked::new(batch).assert_broken(no_second_email);
}

/// An attempt took over a row in doubt, SES refuses its email, and meanwhile tells that it has the one before.
#[test]
fn a_release_must_delete_only_what_is_still_sending() {
    let crash = Design::of(RESEND).one_message().faults(1, &[Fault::Crash]);
    let anything = Design {
        releases: Releases::Anything,
        ..crash
    };

    assert_matters(what_ses_has_told_stands, crash, anything);
}

/// A late release of the attempt before would delete it, and nothing would hold up the next message.
#[test]
fn a_row_taken_over_and_left_in_doubt_needs_another_number_or_a_mark_beside_it() {
    let left = |take_overs| Design {
        begins: Begins::WithALateRelease,
        marks: Marks::OutliveTheInvocation,
        take_overs,
        ..a_lost_answer_told_of_in_time(Design::mixed(TRANSACTION, RESEND))
    };
    Checked::new(left(TakeOvers::NumberAndMark)).assert(no_second_email);
    Checked::new(left(TakeOvers::NumberAlone)).assert(no_second_email);
    Checked::new(left(TakeOvers::MarkAlone)).assert(no_second_email);
    Checked::new(left(TakeOvers::Neither)).assert_broken(no_second_email);
}

/// An email that left, left: whichever attempt the row is of, it is true that the event has its email. The number is
/// for what the worker says of it, not for what is promised.
#[test]
fn a_settle_as_sent_could_do_without_the_number() {
    let of_any_attempt = |mode| Design {
        settles: Settles::OfAnyAttempt,
        ..Design::of(mode).faults(2, ANY)
    };
    let resend = Checked::new(of_any_attempt(RESEND));
    resend.assert(a_second_email_follows_an_attempt_in_doubt_not_heard_of);
    resend.assert(no_email_is_lost);
    let hold = Checked::new(of_any_attempt(HOLD));
    hold.assert(no_second_email);
    hold.assert(no_email_is_lost);
}

/// Who decides to send an event that is held needs its message.
#[test]
fn the_message_of_an_event_that_is_held_must_not_be_deleted() {
    let crash = Design::of(HOLD).one_message().faults(1, &[Fault::Crash]);
    let acknowledged = Design {
        held: Held::Acknowledged,
        ..crash
    };

    assert_matters(no_email_is_lost, crash, acknowledged);
}

/// A release that comes late must not free a key that somebody else has claimed since.
#[test]
fn a_release_must_carry_the_number_of_its_attempt() {
    let without_numbers = Design {
        fences: Fences::None,
        ..LATE_RELEASES
    };

    assert_matters(
        a_second_email_follows_an_attempt_in_doubt_not_heard_of,
        LATE_RELEASES,
        without_numbers,
    );
}

/// A row is deleted when nothing was sent, and its number with it: the next row must not begin with the same one.
#[test]
fn the_number_of_an_attempt_must_not_come_back_after_its_row_was_deleted() {
    let from_one = Design {
        fences: Fences::FromOne,
        ..LATE_RELEASES
    };
    Checked::new(from_one).assert_broken(a_second_email_follows_an_attempt_in_doubt_not_heard_of);
}

/// Each claim with a number of its own, so that no claim takes another's row for its own: that is shown elsewhere.
const LATE_RELEASES: Design = Design {
    retries: Retries::TakeANewNumber,
    ..Design::of(RESEND).faults(1, &[Fault::LostConnection])
};

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
    for mode in [RESEND, HOLD] {
        let swept = Design::of(mode).one_message().faults(2, ANY);
        Checked::new(swept).assert_never_stuck();

        let unswept = Design {
            sweep: Sweep::Never,
            ..swept
        };
        Checked::new(unswept).assert_stuck();
    }
}
