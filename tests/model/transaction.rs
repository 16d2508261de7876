//! Transaction mode: the key is inserted in a transaction that stays open until the email is sent.

use crate::attempt::Fate;
use crate::choices::MarkedRows;
use crate::claim::{self, Found};
use crate::design::Fault;
use crate::ledger;
use crate::queue;
use crate::state::{
    Answer, Commit, InDoubt, Orphan, Phase, Row, State, Task, Transaction, Until, WorkerId,
};
use crate::step::{Next, Who};

pub fn next(next: &mut Next<'_>, worker: WorkerId, task: Task, in_doubt: InDoubt) {
    match task.phase {
        Phase::Received | Phase::Waiting { .. } => claim(next, worker, task, in_doubt),
        Phase::Claimed | Phase::Composed | Phase::Sending(_) => {
            lose_transaction(next, worker, task)
        }
        Phase::Accepted(email) => commit(next, worker, task, email),
        Phase::WritingAgain(email) => write_again(next, worker, task, email),
        Phase::NotSent => {
            next.step(
                Who::is(worker, task),
                "rolls back, and is reported",
                |state| queue::report(state, worker, Until::BackOff),
            );
        }
        Phase::NoAnswer => leave_in_doubt(next, worker, task),
        Phase::DoubtingAgain => mark_again(next, worker, task),
        _ => {}
    }
}

fn claim(next: &mut Next<'_>, worker: WorkerId, task: Task, in_doubt: InDoubt) {
    let now = next.now;
    if now.is_locked(task.event) {
        return claim::wait(next, worker, task);
    }
    let held_up = claim::is_held_up(now, next.design, task);
    let found = match claim::found(now.event(task.event).row, held_up, in_doubt) {
        // The mark is of a send for which the row was taken over, and whose transaction is lost.
        Found::Free | Found::ToBeHeld
            if held_up && next.design.marked_rows == MarkedRows::AreLeft =>
        {
            Found::InDoubt
        }
        found => found,
    };
    if let Found::Free = found {
        next.step(
            Who::is(worker, task),
            "claims the key, in a transaction that stays open",
            |state| {
                let task = state.task(worker);
                task.phase = Phase::Claimed;
                task.transaction = Transaction::Open;
                task.claimed = claim::circumstances(now, task.event);
            },
        );
    }
    claim::turn_away(next, worker, task, &found);
}

/// A restart, a failover, the idle time-out: Postgres rolls back, and the worker learns it when it commits.
fn lose_transaction(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    if task.transaction != Transaction::Open {
        return;
    }
    next.fault(
        Fault::LostConnection,
        Who::is(worker, task),
        "loses its transaction, and doesn't know",
        |state| {
            state.task(worker).transaction = Transaction::Cut;
            if let Phase::Sending(Answer::Accepted(email)) = task.phase {
                state.event_mut(task.event).emails.at(email).fate = Fate::ClaimLost;
            }
        },
    );
}

fn commit(next: &mut Next<'_>, worker: WorkerId, task: Task, email: usize) {
    let (who, design) = (Who::is(worker, task), next.design);
    if task.transaction == Transaction::Cut {
        next.step(
            who,
            "can't commit, since its transaction is lost",
            |state| {
                state.task(worker).phase = Phase::WritingAgain(email);
                state.task(worker).transaction = Transaction::None;
            },
        );
        return;
    }
    next.step(who, "commits its claim as sent", |state| {
        ledger::commit(state, design, task.event, Commit::Sent);
        state.task(worker).phase = Phase::Done;
        state.task(worker).transaction = Transaction::None;
    });
    next.fault(
        Fault::LostConnection,
        who,
        "loses the connection with its COMMIT on the way",
        |state| {
            abandon(state, worker, Some(Commit::Sent));
            state.event_mut(task.event).emails.at(email).fate = Fate::ClaimLost;
            state.task(worker).phase = Phase::WritingAgain(email);
        },
    );
}

/// On another connection; it waits for the lost transaction, if that is still open.
fn write_again(next: &mut Next<'_>, worker: WorkerId, task: Task, email: usize) {
    let who = Who::is(worker, task);
    if !next.now.is_locked(task.event) {
        next.step(who, "writes its claim again, as sent", |state| {
            let of = state.event_mut(task.event);
            of.row = Row::Sent;
            of.emails.at(email).fate = Fate::Sound;
            state.task(worker).phase = Phase::Done;
        });
    }
    next.fault(
        Fault::LostConnection,
        who,
        "can't write its claim again before the deadline",
        |state| {
            state.event_mut(task.event).emails.at(email).fate = Fate::NotWritten;
            state.task(worker).phase = Phase::Done;
        },
    );
}

fn leave_in_doubt(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let (who, design) = (Who::is(worker, task), next.design);
    if task.transaction == Transaction::Cut {
        next.step(
            who,
            "can't commit that its send is in doubt, since its transaction is lost",
            |state| {
                state.task(worker).phase = Phase::DoubtingAgain;
                state.task(worker).transaction = Transaction::None;
            },
        );
        return;
    }
    let doubt = Commit::Doubt(task.message);
    next.step(
        who,
        "commits that its send is in doubt, without the claim; reported",
        |state| {
            ledger::commit(state, design, task.event, doubt);
            queue::report(state, worker, Until::Timeout);
        },
    );
    next.fault(
        Fault::LostConnection,
        who,
        "loses the connection as it commits that its send is in doubt",
        |state| {
            abandon(state, worker, Some(doubt));
            state.task(worker).phase = Phase::DoubtingAgain;
        },
    );
}

/// The mark alone, on another connection: it needs no key, and so doesn't wait for the lost transaction.
fn mark_again(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    let who = Who::is(worker, task);
    next.step(who, "marks its send as in doubt; reported", |state| {
        state.event_mut(task.event).mark = Some(task.message);
        queue::report(state, worker, Until::Timeout);
    });
    next.fault(
        Fault::LostConnection,
        who,
        "can't mark its send as in doubt before the deadline; reported",
        |state| queue::report(state, worker, Until::Timeout),
    );
}

/// The transaction goes on without its worker.
pub fn abandon(state: &mut State, worker: WorkerId, commit: Option<Commit>) {
    let task = state.task(worker);
    if task.transaction == Transaction::Open {
        task.transaction = Transaction::None;
        let event = task.event;
        state.event_mut(event).orphan = Some(Orphan { commit });
    }
}
