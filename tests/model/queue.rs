//! SQS: a message is delivered at least once. It comes back no sooner than its visibility timeout, which is longer
//! than any invocation; but SQS may hand out a copy of it at any time.

use crate::design::{Design, Fault, Notifications};
use crate::state::{EventId, Message, MessageId, State, Task, Until, WorkerId};
use crate::step::{Next, Who};

pub fn next(next: &mut Next<'_>) {
    for (id, message) in (0..).zip(next.now.messages) {
        match message {
            Message::Visible => {
                for worker in idle(next.now, next.design) {
                    receive(next, worker, id);
                }
            }
            Message::Invisible(until) => wait(next, id, until),
            Message::Deleted | Message::Dead => {}
        }
    }
}

fn receive(next: &mut Next<'_>, worker: WorkerId, id: MessageId) {
    let task = Task::new(id, next.design.messages[usize::from(id)]);
    next.step(Who::is(worker, task), "receives its message", |state| {
        state.messages[usize::from(id)] = Message::Invisible(Until::Timeout);
        state.workers[worker] = Some(task);
    });
}

fn wait(next: &mut Next<'_>, id: MessageId, until: Until) {
    let (now, design) = (next.now, next.design);
    let event = design.messages[usize::from(id)];
    let place = usize::from(id);
    for worker in idle(now, design) {
        let task = Task::new(id, event);
        next.copy(
            Who::is(worker, task),
            "receives a copy of its message, which is invisible",
            |state| {
                state.workers[worker] = Some(task);
            },
        );
    }
    let may_return = match until {
        // Longer than any invocation.
        Until::Timeout => {
            timers_may_end(now, design, event)
                && !now.tasks_on(event).any(|task| task.message == id)
        }
        Until::BackOff => true,
    };
    if !may_return {
        return;
    }
    let does = match until {
        Until::Timeout => "is visible again after its visibility timeout",
        Until::BackOff => "is visible again after a back-off",
    };
    next.step(Who::Message(id), does, |state| {
        state.messages[place] = Message::Visible
    });
    next.fault(
        Fault::DeadLetter,
        Who::Message(id),
        "was received too often, and is moved to the dead-letter queue",
        |state| {
            state.messages[place] = Message::Dead;
        },
    );
}

/// Of several idle workers that are alike, the first: the others would only do the same under another name.
fn idle(state: &State, design: &Design) -> Vec<WorkerId> {
    let idle = |worker: &WorkerId| state.workers[*worker].is_none();
    let mut workers: Vec<WorkerId> = (0..design.workers.len()).filter(idle).collect();
    workers.dedup_by_key(|worker| design.workers[*worker]);
    workers
}

/// Timers end whenever they like, or, where that is assumed, not before the notification of each email that SES has
/// accepted is processed.
pub fn timers_may_end(state: &State, design: &Design, event: EventId) -> bool {
    let of = state.event(event);
    design.notifications != Notifications::InTime
        || (of.requests.is_empty() && of.emails.iter().all(|email| email.heard))
}

/// Whether no message about this event will be delivered any more.
pub fn is_empty_of(state: &State, design: &Design, event: EventId) -> bool {
    messages_about(state, design, event)
        .all(|message| matches!(message, Message::Deleted | Message::Dead))
        && state.tasks_on(event).next().is_none()
}

pub fn messages_about(
    state: &State,
    design: &Design,
    event: EventId,
) -> impl Iterator<Item = Message> {
    std::iter::zip(state.messages, design.messages)
        .filter(move |(_, of)| **of == event)
        .map(|(message, _)| message)
}

/// The message is acknowledged. A copy in the dead-letter queue stays there.
pub fn delete(state: &mut State, worker: WorkerId) {
    let id = usize::from(state.task(worker).message);
    if state.messages[id] != Message::Dead {
        state.messages[id] = Message::Deleted;
    }
    state.workers[worker] = None;
}

/// The event is held: whoever decides about it finds its message, and can send it again.
pub fn move_to_dead_letters(state: &mut State, worker: WorkerId) {
    let id = usize::from(state.task(worker).message);
    state.messages[id] = Message::Dead;
    state.workers[worker] = None;
}

/// The message is named in the answer's `batchItemFailures`, and stays on the queue.
pub fn report(state: &mut State, worker: WorkerId, until: Until) {
    let id = usize::from(state.task(worker).message);
    if let Message::Invisible(so_far) = &mut state.messages[id] {
        *so_far = until;
    }
    state.workers[worker] = None;
}
