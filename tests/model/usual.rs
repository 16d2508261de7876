//! The usual designs, each of which loses an email or sends a second one without any crash.

use crate::design::Mode;
use crate::queue;
use crate::state::{EventId, Phase, Row, Task, Until, WorkerId};
use crate::step::{Next, Who};

pub fn next(next: &mut Next<'_>, worker: WorkerId, task: Task, mode: Mode) {
    let who = Who::is(worker, task);
    match task.phase {
        Phase::Received | Phase::Waiting { .. } => begin(next, worker, task, mode),
        Phase::Accepted(_) => next.step(who, "marks the event as sent, and unlocks", |state| {
            state.event_mut(task.event).row = Row::Sent;
            state.event_mut(task.event).lock = false;
            state.task(worker).phase = Phase::Done;
        }),
        Phase::NotSent | Phase::NoAnswer => next.step(who, "is reported", |state| {
            state.event_mut(task.event).lock = false;
            queue::report(state, worker, Until::BackOff);
        }),
        _ => {}
    }
}

fn begin(next: &mut Next<'_>, worker: WorkerId, task: Task, mode: Mode) {
    let who = Who::is(worker, task);
    let of = next.now.event(task.event);
    if mode == Mode::SendThenClaim {
        next.step(who, "goes straight on", |state| {
            state.task(worker).phase = Phase::Claimed
        });
        return;
    }
    if of.row == Row::Sent {
        next.step(who, "finds that it is a duplicate", |state| {
            state.task(worker).phase = Phase::Done
        });
        return;
    }
    match mode {
        Mode::ClaimAndKeep => next.step(who, "claims the key, and commits", |state| {
            state.event_mut(task.event).row = Row::Sent;
            state.task(worker).phase = Phase::Claimed;
        }),
        Mode::ExpiringLock if of.lock => {
            next.step(who, "finds the lock taken, and is reported", |state| {
                queue::report(state, worker, Until::BackOff)
            });
        }
        Mode::ExpiringLock => next.step(who, "takes the lock, and finds no mark", |state| {
            state.event_mut(task.event).lock = true;
            state.task(worker).phase = Phase::Claimed;
        }),
        _ => next.step(who, "finds no mark", |state| {
            state.task(worker).phase = Phase::Claimed
        }),
    }
}

/// A lock with a time to live doesn't know whether its holder still works.
pub fn expire_lock(next: &mut Next<'_>, event: EventId) {
    if next.now.event(event).lock {
        next.step(Who::Time, "the lock has expired", |state| {
            state.event_mut(event).lock = false
        });
    }
}
