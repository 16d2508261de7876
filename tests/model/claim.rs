//! What a claim finds, in both modes.

use crate::design::{Design, DoubtRead, DoubtRow};
use crate::queue;
use crate::state::{
    Circumstances, EventId, Fate, InDoubt, Lease, Phase, Row, State, Task, Transaction, Until,
    WorkerId,
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
        (Row::Unknown, _) => Found::Held,
    }
}

/// The claim's insert waits while another transaction holds the key.
pub fn wait(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let who = Who::is(worker, task);
    if next.design.doubt_read == DoubtRead::InTheInsert && task.phase == Phase::Received {
        let saw_doubt = is_held_up(next.now, next.design, task);
        next.step(
            who,
            "claims, and waits for the neighbour that has the key",
            |state| {
                state.task(worker).phase = Phase::Waiting { saw_doubt };
            },
        );
    }
    next.step(
        who,
        "has waited for the key for long enough, and is reported",
        |state| queue::report(state, worker, Until::BackOff),
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
                state.event_mut(task.event).row = Row::Unknown;
                state.task(worker).phase = Phase::Done;
            },
        ),
        Found::Held => next.step(who, "finds the event held", |state| {
            state.task(worker).phase = Phase::Done
        }),
    }
}

/// Whether transaction mode's in-doubt row keeps this claim from sending.
pub fn is_held_up(state: &State, design: &Design, task: Task) -> bool {
    if let Phase::Waiting { saw_doubt } = task.phase {
        return saw_doubt;
    }
    match (state.event(task.event).doubt, design.doubt_row) {
        (None, _) => false,
        (Some(_), DoubtRow::Everybody) => true,
        (Some(by), DoubtRow::OtherMessages) => by != task.message,
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
        if matches!(
            task.phase,
            Phase::Claimed | Phase::Composed | Phase::Sending(_)
        ) {
            claimed.earlier.add(fate_so_far(task));
        }
    }
    claimed
}

pub fn fate_so_far(task: Task) -> Fate {
    match task.transaction {
        Transaction::Cut => Fate::ClaimLost,
        Transaction::Open | Transaction::None => Fate::Sound,
    }
}
