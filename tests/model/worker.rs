//! A worker: what all of them do alike, and how they die.

use crate::attempt::Fate;
use crate::choices::Held;
use crate::design::{Design, Fault, Mode};
use crate::fence;
use crate::queue;
use crate::ses;
use crate::state::{Answer, Commit, Phase, State, Statement, Task, WorkerId};
use crate::step::{Next, Who};
use crate::{lease, transaction, usual};

pub fn next(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let who = Who::is(worker, task);
    let mode = next.design.workers[worker];
    match task.phase {
        Phase::Claimed => {
            next.step(who, "composes the email", |state| {
                state.task(worker).phase = Phase::Composed
            });
            next.step(who, "can't compose the email", |state| {
                state.task(worker).phase = Phase::NotSent
            });
        }
        Phase::Composed => next.step(who, "asks SES to send the email", |state| {
            state.task(worker).phase = Phase::Sending(Answer::NotYet);
        }),
        Phase::Sending(answer) => ses::answer(next, worker, task, answer),
        Phase::Held if next.design.held == Held::Acknowledged => {
            next.step(who, "is done: its message is deleted", |state| {
                queue::delete(state, worker)
            });
        }
        Phase::Held => next.step(who, "moves its message to the dead-letter queue", |state| {
            queue::move_to_dead_letters(state, worker)
        }),
        Phase::Done => next.step(who, "is done: its message is deleted", |state| {
            queue::delete(state, worker)
        }),
        _ => {}
    }
    match mode {
        Mode::Transaction(in_doubt) => transaction::next(next, worker, task, in_doubt),
        Mode::Lease(in_doubt) => lease::next(next, worker, task, in_doubt),
        _ => usual::next(next, worker, task, mode),
    }
    next.fault(Fault::Crash, who, "dies", |state| die(state, worker, None));
    if let Some(last) = last_words(next.now, next.design, mode, task) {
        next.fault(
            Fault::Crash,
            who,
            "dies with its last statement on the way",
            |state| die(state, worker, Some(last)),
        );
    }
}

/// A statement that Postgres may still get, and run, from a worker that is dead.
enum LastWords {
    Transaction(Commit),
    Lease(Statement),
}

fn last_words(now: &State, design: &Design, mode: Mode, task: Task) -> Option<LastWords> {
    let number = task.fence;
    match (mode, task.phase) {
        (Mode::Transaction(_), Phase::Accepted(_)) => Some(LastWords::Transaction(Commit::Sent)),
        (Mode::Transaction(_), Phase::NoAnswer) => {
            Some(LastWords::Transaction(Commit::Doubt(task.message)))
        }
        (Mode::Lease(in_doubt), Phase::Received | Phase::ClaimingAgain | Phase::Waiting { .. }) => {
            let number = match number {
                0 => fence::new(now, design.fences, task.event),
                number => number,
            };
            Some(LastWords::Lease(Statement::Claim(in_doubt, number)))
        }
        (Mode::Lease(_), Phase::Accepted(_)) => Some(LastWords::Lease(Statement::Settle(number))),
        (Mode::Lease(_), Phase::NotSent) => Some(LastWords::Lease(Statement::Release(number))),
        (Mode::Lease(_), Phase::NoAnswer) => Some(LastWords::Lease(Statement::Doubt(number))),
        _ => None,
    }
}

fn die(state: &mut State, worker: WorkerId, last: Option<LastWords>) {
    let task = *state.task(worker);
    match task.phase {
        Phase::Sending(Answer::NotYet) => ses::give_up(state, worker, Fate::Crashed),
        Phase::Sending(Answer::Accepted(email))
        | Phase::Accepted(email)
        | Phase::WritingAgain(email) => {
            state.event_mut(task.event).emails.at(email).fate = Fate::Crashed;
        }
        _ => {}
    }
    match last {
        Some(LastWords::Lease(statement)) => {
            state.event_mut(task.event).statements.push(statement);
        }
        Some(LastWords::Transaction(commit)) => transaction::abandon(state, worker, Some(commit)),
        None => transaction::abandon(state, worker, None),
    }
    // Its message stays on the queue, and a new sandbox takes its place.
    state.workers[worker] = None;
}
