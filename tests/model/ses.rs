//! SES: it accepts an email or refuses it, and its answer can be lost. It knows no idempotency key: whatever it
//! accepts is one more email.

use crate::attempt::{Email, Fate, Request};
use crate::claim;
use crate::design::Fault;
use crate::state::{Answer, EventId, Phase, State, Task, WorkerId};
use crate::step::{Next, Who};

/// What happens to the request of a worker that waits for the answer.
pub fn answer(next: &mut Next<'_>, worker: WorkerId, task: Task, answer: Answer) {
    let who = Who::is(worker, task);
    match answer {
        Answer::NotYet => {
            next.step(Who::Ses, "accepts the email", |state| {
                let email = accept(state, task.event, request(task, claim::fate_so_far(task)));
                state.task(worker).phase = Phase::Sending(Answer::Accepted(email));
            });
            next.step(Who::Ses, "refuses the email", |state| {
                state.task(worker).phase = Phase::NotSent
            });
            next.fault(
                Fault::LostAnswer,
                who,
                "gets no answer from SES in time",
                |state| {
                    give_up(state, worker, Fate::NoAnswer);
                    state.task(worker).phase = Phase::NoAnswer;
                },
            );
        }
        Answer::Accepted(email) => {
            next.step(who, "learns that SES has accepted", |state| {
                state.task(worker).phase = Phase::Accepted(email)
            });
            next.fault(
                Fault::LostAnswer,
                who,
                "never gets SES's answer, which was yes",
                |state| {
                    state.event_mut(task.event).emails.at(email).fate = Fate::NoAnswer;
                    state.task(worker).phase = Phase::NoAnswer;
                },
            );
        }
    }
}

/// A request on the wire reaches SES, however late, whether anybody waits for its answer or not.
pub fn give_up(state: &mut State, worker: WorkerId, fate: Fate) {
    let task = *state.task(worker);
    state
        .event_mut(task.event)
        .requests
        .push(request(task, fate));
}

fn request(task: Task, fate: Fate) -> Request {
    Request {
        fate,
        claimed: task.claimed,
    }
}

/// What happens to requests that nobody waits for.
pub fn next(next: &mut Next<'_>, event: EventId) {
    for (place, &request) in next.now.event(event).requests.iter().enumerate() {
        next.step(Who::Ses, "accepts an email whose sender is gone", |state| {
            state.event_mut(event).requests.take(place);
            accept(state, event, request);
        });
        next.step(
            Who::Ses,
            "never gets the request of a sender that is gone, or refuses it",
            |state| {
                state.event_mut(event).requests.take(place);
            },
        );
    }
}

fn accept(state: &mut State, event: EventId, request: Request) -> usize {
    let Request { fate, claimed } = request;
    state.event_mut(event).emails.push(Email {
        heard: false,
        fate,
        claimed,
    })
}
