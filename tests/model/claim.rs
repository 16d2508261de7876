//! What a claim finds, in both modes.

use crate::attempt::{Circumstances, Fate};
use crate::choices::{MarkRead, MarkStops};
use crate::design::Design;
use crate::queue;
use crate::state::{
    EventId, InDoubt, Lease, Phase, Row, State, Task, Transaction, Until, WorkerId,
};
use crate::step::{Next, Who};

pub enum Found {
    /// Nothing, or a row that may be taken over: the key is the claim's.
    Free,
    /// Handled: this message is a duplicate.
    Sent,
    /// A live lease of another worker.
    InProgress,
    /// In doubt, and SES may yet tell.
    InDoubt,
    /// In doubt, SES has not told, and it shall not be sent again.
    ToBeHeld,
    Held,
}

pub fn found(row: Row, held_up: bool, in_doubt: InDoubt) -> Found {
    match (row, in_doubt) {
        (Row::Absent, _) if held_up => Found::InDoubt,
        (Row::Absent, _) | (Row::Sending(_, Lease::WaitedFor), InDoubt::Resend) => Found::Free,
        (Row::Sending(_, Lease::WaitedFor), InDoubt::Hold) => Found::ToBeHeld,
        (Row::Sending(_, Lease::Live), _) => Found::InProgress,
        (Row::Sending(_, Lease::RanOut), _) => Found::InDoubt,
        (Row::Sent, _) => Found::Sent,
        (Row::Unknown(_), _) => Found::Held,
    }
}

/// Transaction mode's insert waits while another transaction holds the key.
pub fn wait(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    if next.design.mark_read == MarkRead::InTheInsert && task.phase == Phase::Received {
        begin(next, worker, task);
    }
    next.step(
        Who::is(worker, task),
        "has waited for the key for long enough, and is reported",
        |state| queue::report(state, worker, Until::BackOff),
    );
}

/// The statement goes by what stands now, whatever is committed before its insert gets through.
pub fn begin(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let saw_mark = is_held_up(next.now, next.design, task);
    next.step(
        Who::is(worker, task),
        "begins its claim, with a snapshot of now",
        |state| {
            state.task(worker).phase = Phase::Waiting { saw_mark };
        },
    );
}

/// What doesn't end in a claim that is won.
pub fn turn_away(next: &mut Next<'_>, worker: WorkerId, task: Task, found: &Found) {
    let who = Who::is(worker, task);
    match found {
        Found::Free => {}
        Found::Sent => next.step(who, "finds that it is a duplicate", |state| {
            state.task(worker).phase = Phase::Done
        }),
        Found::InProgress => {
            next.step(who, "finds a live lease, and is reported", |state| {
                queue::report(state, worker, Until::BackOff)
            });
        }
        Found::InDoubt => {
            next.step(who, "finds the event in doubt, and is reported", |state| {
                queue::report(state, worker, Until::Timeout)
            });
        }
        Found::ToBeHeld => next.step(
            who,
            "finds the event in doubt for too long: it is held",
            |state| {
                hold(state, task.event);
                state.task(worker).phase = Phase::Held;
            },
        ),
        Found::Held => next.step(who, "finds the event held", |state| {
            state.task(worker).phase = Phase::Held
        }),
    }
}

/// The row in doubt becomes `unknown`.
pub fn hold(state: &mut State, event: EventId) {
    if let Row::Sending(fence, _) = state.event(event).row {
        state.event_mut(event).row = Row::Unknown(fence);
    }
}

/// Whether transaction mode's mark keeps this claim from sending, as far as the claim has seen.
pub fn is_held_up(state: &State, design: &Design, task: Task) -> bool {
    if let Phase::Waiting { saw_mark } = task.phase {
        return saw_mark;
    }
    match (state.event(task.event).mark, design.mark_stops) {
        (None, _) => false,
        (Some(_), MarkStops::Everybody) => true,
        (Some(by), MarkStops::OtherMessages) => by != task.message,
    }
}

/// How an attempt that wins its claim now stands to the earlier ones.
pub fn circumstances(state: &State, event: EventId) -> Circumstances {
    let of = state.event(event);
    let mut claimed = Circumstances {
        after_notification: of.emails.iter().any(|email| email.heard),
        ..Default::default()
    };
    of.emails
        .iter()
        .for_each(|email| claimed.earlier.add(email.fate));
    of.requests
        .iter()
        .for_each(|request| claimed.earlier.add(request.fate));
    // Those that may send yet.
    for task in state.tasks_on(event) {
        if may_send(task.phase) {
            claimed.earlier.add(fate_so_far(task));
        }
    }
    claimed
}

/// Whether this attempt has won, and may send an email yet.
pub fn may_send(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Won | Phase::Claimed | Phase::Composed | Phase::Sending(_)
    )
}

pub fn fate_so_far(task: Task) -> Fate {
    match task.transaction {
        Transaction::Cut => Fate::ClaimLost,
        Transaction::Open | Transaction::None => Fate::Sound,
    }
}
