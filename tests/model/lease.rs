//! Lease mode: the key is claimed under a lease, the email is sent, the row is settled; three transactions.

use crate::choices::{Fences, LastRead, MarkRead, Retries};
use crate::claim::{self, Found};
use crate::design::{Design, Fault};
use crate::fence;
use crate::queue;
use crate::settle;
use crate::state::{Fence, InDoubt, Lease, Phase, Row, State, Statement, Task, Until, WorkerId};
use crate::statement;
use crate::step::{Next, Who};

pub fn next(next: &mut Next<'_>, worker: WorkerId, task: Task, in_doubt: InDoubt) {
    match task.phase {
        Phase::Received if next.design.has_marks() => claim::begin(next, worker, task),
        Phase::Received | Phase::Waiting { .. } => claim(next, worker, task, in_doubt),
        Phase::ClaimingAgain => {
            if next.design.has_marks() {
                claim::begin(next, worker, task);
            } else {
                claim(next, worker, task, in_doubt);
            }
            give_up(next, worker, task);
        }
        Phase::Won => read_again(next, worker, task),
        Phase::Claimed | Phase::Composed | Phase::Sending(_) | Phase::Held | Phase::Done => {}
        _ => settle::next(next, worker, task),
    }
}

fn claim(next: &mut Next<'_>, worker: WorkerId, task: Task, in_doubt: InDoubt) {
    let (now, design) = (next.now, next.design);
    lose_claim(next, worker, task, in_doubt);
    let who = Who::is(worker, task);
    if now.is_locked(task.event) {
        // It waits for an insert, and skips a row that is taken over.
        next.step(
            who,
            "finds the key locked for too long, and is reported",
            |state| queue::report(state, worker, Until::BackOff),
        );
        return;
    }
    let number = number(now, design, task);
    let row = now.event(task.event).row;
    if is_its_own(design, task, row, number) {
        next.step(who, "finds that its claim had been committed", |state| {
            win(state, design, worker, number);
        });
        return;
    }
    let held_up = claim::is_held_up(now, design, task);
    let found = claim::found(row, held_up, in_doubt);
    if let Found::Free = found {
        next.step(who, "claims the key as sending, under a lease", |state| {
            state.event_mut(task.event).row = Row::Sending(number, Lease::Live);
            win(state, design, worker, number);
        });
    }
    claim::turn_away(next, worker, task, &found);
}

fn number(state: &State, design: &Design, task: Task) -> Fence {
    if task.fence == 0 {
        fence::new(state, design.fences, task.event)
    } else {
        task.fence
    }
}

/// A claim whose answer was lost may have been done. Nobody else has its number.
fn is_its_own(design: &Design, task: Task, row: Row, number: Fence) -> bool {
    let had_a_number = task.fence != 0 || design.fences == Fences::OfTheBatch;
    had_a_number && matches!(row, Row::Sending(fence, _) if fence == number)
}

fn win(state: &mut State, design: &Design, worker: WorkerId, number: Fence) {
    let event = state.task(worker).event;
    let claimed = claim::circumstances(state, event);
    let is_to_read = design.has_marks() && design.mark_read == MarkRead::AfterTheInsert;
    let task = state.task(worker);
    task.phase = if is_to_read {
        Phase::Won
    } else {
        Phase::Claimed
    };
    task.fence = number;
    task.claimed = claimed;
}

fn lose_claim(next: &mut Next<'_>, worker: WorkerId, task: Task, in_doubt: InDoubt) {
    let (now, design) = (next.now, next.design);
    let who = Who::is(worker, task);
    let number = number(now, design, task);
    let statement = Statement::Claim(in_doubt, number);
    let claim_again = |state: &mut State| {
        let task = state.task(worker);
        task.phase = Phase::ClaimingAgain;
        task.fence = match design.retries {
            Retries::KeepTheNumber => number,
            Retries::TakeANewNumber => 0,
        };
    };
    next.fault(
        Fault::LostConnection,
        who,
        "loses the connection with its claim on the way",
        |state| {
            state.event_mut(task.event).statements.push(statement);
            claim_again(state);
        },
    );
    if !now.is_locked(task.event) {
        next.fault(
            Fault::LostReply,
            who,
            "gets no answer to its claim, which is done",
            |state| {
                statement::run(state, design, task.event, statement);
                claim_again(state);
            },
        );
    }
}

/// It may have claimed, and tries once to undo it.
fn give_up(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let (who, design) = (Who::is(worker, task), next.design);
    let release = Statement::Release(task.fence);
    if !next.now.is_locked(task.event) {
        next.step(
            who,
            "can't claim before the deadline, and releases what it may have claimed; reported",
            |state| {
                statement::run(state, design, task.event, release);
                queue::report(state, worker, Until::BackOff);
            },
        );
    }
    next.fault(
        Fault::LostConnection,
        who,
        "can't claim before the deadline, and loses the connection with its release on the way; reported",
        |state| {
            state.event_mut(task.event).statements.push(release);
            queue::report(state, worker, Until::BackOff);
        },
    );
}

/// The claim's own snapshot may be older than its wait for a neighbour, who may have left a mark; and SES may have
/// told since. Where no neighbour leaves marks this step is left out: it could only keep more emails from leaving.
fn read_again(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let (who, now, design) = (Who::is(worker, task), next.now, next.design);
    let row = now.event(task.event).row;
    let is_mine = matches!(row, Row::Sending(fence, _) if fence == task.fence);
    if claim::is_held_up(now, design, task) {
        next.step(who, "finds a mark of another message", |state| {
            state.task(worker).phase = Phase::NotSent
        });
    } else if design.last_read == LastRead::MarksAndRow && !is_mine {
        next.step(who, "finds that its row says sent by now", |state| {
            state.task(worker).phase = Phase::NotSent
        });
    } else {
        next.step(who, "finds no mark of another message", |state| {
            state.task(worker).phase = Phase::Claimed
        });
    }
}
