//! Lease mode's last transaction: the row says what became of the send. A write that fails is written again on
//! another connection.

use crate::attempt::Fate;
use crate::choices::Releases;
use crate::design::Fault;
use crate::queue;
use crate::state::{Phase, Row, Statement, Task, Until, WorkerId};
use crate::statement;
use crate::step::{Next, Who};

pub fn next(next: &mut Next<'_>, worker: WorkerId, task: Task) {
    match task.phase {
        Phase::Accepted(email) => sent(next, worker, task, email),
        Phase::WritingAgain(email) => sent_again(next, worker, task, email),
        Phase::NotSent => write(next, worker, task, &RELEASE),
        Phase::ReleasingAgain => write_again(next, worker, task, &RELEASE),
        Phase::NoAnswer => write(next, worker, task, &DOUBT),
        Phase::DoubtingAgain => write_again(next, worker, task, &DOUBT),
        _ => {}
    }
}

fn sent(next: &mut Next<'_>, worker: WorkerId, task: Task, email: usize) {
    let (who, design) = (Who::is(worker, task), next.design);
    let statement = Statement::Settle(task.fence);
    if !next.now.is_locked(task.event) {
        next.step(who, "settles its row as sent", |state| {
            statement::run(state, design, task.event, statement);
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

fn sent_again(next: &mut Next<'_>, worker: WorkerId, task: Task, email: usize) {
    let (who, design) = (Who::is(worker, task), next.design);
    if !next.now.is_locked(task.event) {
        next.step(
            who,
            "settles its row as sent, on another connection",
            |state| {
                statement::run(state, design, task.event, Statement::Settle(task.fence));
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

/// How a row is left of which nothing is known to have been sent; the message is reported.
struct Leaving {
    statement: fn(u8) -> Statement,
    until: Until,
    again: Phase,
    does: &'static str,
    does_again: &'static str,
    is_cut: &'static str,
    cannot: &'static str,
}

const RELEASE: Leaving = Leaving {
    statement: Statement::Release,
    until: Until::BackOff,
    again: Phase::ReleasingAgain,
    does: "releases its row, since nothing was sent; reported",
    does_again: "releases its row, on another connection; reported",
    is_cut: "loses the connection as it releases its row",
    cannot: "can't release its row before the deadline; reported",
};

const DOUBT: Leaving = Leaving {
    statement: Statement::Doubt,
    until: Until::Timeout,
    again: Phase::DoubtingAgain,
    does: "ends its lease, so that its row is in doubt; reported",
    does_again: "ends its lease, on another connection; reported",
    is_cut: "loses the connection as it ends its lease",
    cannot: "can't end its lease before the deadline; reported",
};

fn write(next: &mut Next<'_>, worker: WorkerId, task: Task, leaving: &Leaving) {
    leave(next, worker, task, leaving, leaving.does);
    next.fault(
        Fault::LostConnection,
        Who::is(worker, task),
        leaving.is_cut,
        |state| {
            let statement = (leaving.statement)(task.fence);
            state.event_mut(task.event).statements.push(statement);
            state.task(worker).phase = leaving.again;
        },
    );
}

fn write_again(next: &mut Next<'_>, worker: WorkerId, task: Task, leaving: &Leaving) {
    leave(next, worker, task, leaving, leaving.does_again);
    next.fault(
        Fault::LostConnection,
        Who::is(worker, task),
        leaving.cannot,
        |state| queue::report(state, worker, leaving.until),
    );
}

fn leave(next: &mut Next<'_>, worker: WorkerId, task: Task, leaving: &Leaving, does: &'static str) {
    let design = next.design;
    if !next.now.is_locked(task.event) {
        next.step(Who::is(worker, task), does, |state| {
            let statement = (leaving.statement)(task.fence);
            statement::run(state, design, task.event, statement);
            if matches!(statement, Statement::Release(_)) && design.releases == Releases::Anything {
                // While its worker lives, the row is of its attempt, whatever it says.
                state.event_mut(task.event).row = Row::Absent;
            }
            queue::report(state, worker, leaving.until);
        });
    }
}
