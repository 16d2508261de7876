//! Postgres: the ledger, the transactions and statements whose workers are gone, and the clock that leases go by.

use crate::choices::{Fences, Leases, Marks, Sweep, TakeOvers};
use crate::claim;
use crate::design::Design;
use crate::fence;
use crate::queue;
use crate::state::{Commit, EventId, Fence, Lease, Phase, Row, State, Statement, Task};
use crate::statement;
use crate::step::{Next, Who};

pub fn next(next: &mut Next<'_>, event: EventId) {
    end_orphan(next, event);
    run_late(next, event);
    if queue::timers_may_end(next.now, next.design, event) {
        end_timers(next, event);
        sweep(next, event);
    }
}

fn end_timers(next: &mut Next<'_>, event: EventId) {
    let (now, design) = (next.now, next.design);
    if now.event(event).mark.is_some() && mark_may_end(now, design, event) {
        next.step(Who::Time, "IN_DOUBT_WAIT is over", |state| {
            state.event_mut(event).mark = None
        });
    }
    match now.event(event).row {
        Row::Sending(fence, Lease::Live) if lease_may_end(now, design, event, fence) => {
            next.step(Who::Time, "the lease has run out", |state| {
                state.event_mut(event).row = Row::Sending(fence, Lease::RanOut);
            });
        }
        Row::Sending(fence, Lease::RanOut) => {
            next.step(
                Who::Time,
                "IN_DOUBT_WAIT is over after the lease",
                |state| {
                    state.event_mut(event).row = Row::Sending(fence, Lease::WaitedFor);
                },
            );
        }
        _ => {}
    }
}

/// A row in doubt waits for a notification, or for the next message about its event. If neither comes, it is left to
/// people, who must be able to see it.
fn sweep(next: &mut Next<'_>, event: EventId) {
    let (now, design) = (next.now, next.design);
    let is_in_doubt = matches!(now.event(event).row, Row::Sending(_, Lease::WaitedFor));
    if design.sweep == Sweep::ToUnknown && is_in_doubt && queue::is_empty_of(now, design, event) {
        next.step(
            Who::Cleanup,
            "finds a row in doubt that no message comes back for: it is held",
            |state| {
                claim::hold(state, event);
            },
        );
    }
}

fn mark_may_end(state: &State, design: &Design, event: EventId) -> bool {
    let is_between = |task: Task| matches!(task.phase, Phase::Waiting { .. } | Phase::Won);
    design.marks == Marks::MayEndBetween || !state.tasks_on(event).any(is_between)
}

/// A lease ends after its worker's invocation must have.
fn lease_may_end(state: &State, design: &Design, event: EventId, fence: Fence) -> bool {
    design.leases == Leases::MayEndBefore || !state.tasks_on(event).any(|task| task.fence == fence)
}

fn end_orphan(next: &mut Next<'_>, event: EventId) {
    let design = next.design;
    let Some(orphan) = next.now.event(event).orphan else {
        return;
    };
    next.step(
        Who::Postgres,
        "rolls back the transaction that nobody holds any more",
        |state| {
            state.event_mut(event).orphan = None;
        },
    );
    if let Some(late) = orphan.commit {
        next.step(
            Who::Postgres,
            "commits the transaction that nobody holds any more",
            |state| {
                state.event_mut(event).orphan = None;
                commit(state, design, event, late);
            },
        );
    }
}

fn run_late(next: &mut Next<'_>, event: EventId) {
    let (now, design) = (next.now, next.design);
    for (place, &late) in now.event(event).statements.iter().enumerate() {
        next.step(
            Who::Postgres,
            "never gets a statement whose worker is gone",
            |state| {
                state.event_mut(event).statements.take(place);
            },
        );
        if now.is_locked(event) {
            continue;
        }
        let does = match late {
            Statement::Claim(..) => "runs a claim whose worker is gone",
            Statement::Settle(_) => "runs a settle whose worker is gone",
            Statement::Release(_) => "runs a release whose worker is gone",
            Statement::Doubt(_) => "runs the end of a lease whose worker is gone",
        };
        next.step(Who::Postgres, does, |state| {
            state.event_mut(event).statements.take(place);
            statement::run(state, design, event, late);
        });
    }
}

/// What stands after a commit in transaction mode.
pub fn commit(state: &mut State, design: &Design, event: EventId, commit: Commit) {
    let new = fence::new(state, Fences::Unique, event);
    let event = state.event_mut(event);
    match (commit, event.row) {
        (Commit::Sent, _) => event.row = Row::Sent,
        (Commit::Doubt(by), Row::Absent) => event.mark = Some(by),
        // A row of lease mode that was taken over, and is in doubt once more.
        (Commit::Doubt(by), Row::Sending(old, _)) => {
            let (number, mark) = match design.take_overs {
                TakeOvers::NumberAndMark => (new, Some(by)),
                TakeOvers::NumberAlone => (new, event.mark),
                TakeOvers::MarkAlone => (old, Some(by)),
                TakeOvers::Neither => (old, event.mark),
            };
            event.row = Row::Sending(number, Lease::RanOut);
            event.mark = mark;
        }
        (Commit::Doubt(_), Row::Sent | Row::Unknown(_)) => {}
    }
}
