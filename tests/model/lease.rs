//! Lease mode: the key is claimed under a lease, the email is sent, the row is settled; three transactions.

use crate::claim::{self, Found};
use crate::design::{Design, Fault};
use crate::fence;
use crate::queue;
use crate::state::{
    EventId, Fate, Fence, InDoubt, Lease, Phase, Row, State, Statement, Task, Until, WorkerId,
};
use crate::step::{Next, Who};

pub fn next(next: &mut Next<'_>, worker: WorkerId, task: Task, in_doubt: InDoubt) {
    match task.phase {
        Phase::Received | Phase::Waiting { .. } => claim(next, worker, task, in_doubt),
        Phase::Accepted(email) => settle(next, worker, task, email),
        Phase::WritingAgain(email) => settle_again(next, worker, task, email),
        Phase::NotSent => release(next, worker, task),
        Phase::NoAnswer => stay_in_doubt(next, worker, task),
        Phase::Claimed | Phase::Composed | Phase::Sending(_) | Phase::Done => {}
    }
}

fn claim(next: &mut Next<'_>, worker: WorkerId, task: Task, in_doubt: InDoubt) {
    let (now, design) = (next.now, next.design);
    if now.is_locked(task.event) {
        return claim::wait(next, worker, task);
    }
    let found = claim::found(
        now.event(task.event).row,
        claim::is_held_up(now, design, task),
        in_doubt,
    );
    let who = Who::is(worker, task);
    if let Found::Free = found {
        next.step(who, "claims the key as sending, under a lease", |state| {
            let fence = lease(state, design, task.event);
            let task = state.task(worker);
            task.phase = Phase::Claimed;
            task.fence = fence;
            task.claimed = claim::circumstances(now, task.event);
        });
    }
    next.fault(
        Fault::LostConnection,
        who,
        "loses the connection with its claim on the way; reported",
        |state| {
            state
                .event_mut(task.event)
                .statements
                .push(Statement::Claim(in_doubt));
            queue::report(state, worker, Until::BackOff);
        },
    );
    claim::turn_away(next, worker, task, &found);
}

fn settle(next: &mut Next<'_>, worker: WorkerId, task: Task, email: usize) {
    let who = Who::is(worker, task);
    let design = next.design;
    let statement = Statement::Settle(task.fence);
    if !next.now.is_locked(task.event) {
        next.step(who, "settles its row as sent", |state| {
            run(state, design, task.event, statement);
            state.task(worker).phase = Phase::Done;
        });
    }
    next.fault(
        Fault::LostConnection,
        who,
        "loses the connection as it settles its row",
        |state| {
            state.event_mut(task.event).statements.push(statement);
            state.task(worker).phase = Phase::WritingAgain(email);
        },
    );
}

fn settle_again(next: &mut Next<'_>, worker: WorkerId, task: Task, email: usize) {
    let who = Who::is(worker, task);
    let design = next.design;
    if !next.now.is_locked(task.event) {
        next.step(
            who,
            "settles its row as sent, on another connection",
            |state| {
                run(state, design, task.event, Statement::Settle(task.fence));
                state.task(worker).phase = Phase::Done;
            },
        );
    }
    next.fault(
        Fault::LostConnection,
        who,
        "can't settle its row before the deadline",
        |state| {
            state.event_mut(task.event).emails.at(email).fate = Fate::NotWritten;
            state.task(worker).phase = Phase::Done;
        },
    );
}

fn release(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let who = Who::is(worker, task);
    let design = next.design;
    let statement = Statement::Release(task.fence);
    if !next.now.is_locked(task.event) {
        next.step(
            who,
            "releases its row, since nothing was sent; reported",
            |state| {
                run(state, design, task.event, statement);
                queue::report(state, worker, Until::BackOff);
            },
        );
    }
    next.fault(
        Fault::LostConnection,
        who,
        "loses the connection as it releases its row; reported",
        |state| {
            state.event_mut(task.event).statements.push(statement);
            queue::report(state, worker, Until::BackOff);
        },
    );
}

fn stay_in_doubt(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let who = Who::is(worker, task);
    next.step(who, "leaves its row as sending; reported", |state| {
        queue::report(state, worker, Until::Timeout)
    });
}

/// What a statement does when it runs, perhaps long after its worker is gone.
pub fn run(state: &mut State, design: &Design, event: EventId, statement: Statement) {
    let row = state.event(event).row;
    match (statement, row) {
        (Statement::Claim(in_doubt), _) => {
            let held_up = state.event(event).doubt.is_some();
            match claim::found(row, held_up, in_doubt) {
                Found::Free => {
                    lease(state, design, event);
                }
                Found::ToBeHeld => state.event_mut(event).row = Row::Unknown,
                _ => {}
            }
        }
        (Statement::Settle(of), Row::Sending(fence, _)) if of == fence => {
            state.event_mut(event).row = Row::Sent;
        }
        (Statement::Release(of), Row::Sending(fence, _)) if of == fence => {
            state.event_mut(event).row = Row::Absent;
        }
        // Not of this attempt: nothing changes.
        (Statement::Settle(_) | Statement::Release(_), _) => {}
    }
}

fn lease(state: &mut State, design: &Design, event: EventId) -> Fence {
    let fence = fence::new(state, design.fences, event);
    state.event_mut(event).row = Row::Sending(fence, Lease::Live);
    fence
}
