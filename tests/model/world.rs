//! A design as a system that can be searched.

use crate::attempt::{Circumstances, Email, Fate};
use crate::checker::System;
use crate::choices::Begins;
use crate::design::Design;
use crate::state::{
    Commit, EVENTS, Event, Lease, MESSAGES, Message, MessageId, Orphan, Row, State, Statement,
    Until, WORKERS,
};
use crate::step::{Next, Step};
use crate::{feedback, ledger, operator, queue, ses, tidy, usual, worker};

impl System for Design {
    type State = State;
    type Step = Step;

    fn start(&self) -> State {
        let mut messages = [Message::Deleted; MESSAGES];
        messages[..self.messages.len()].fill(Message::Visible);
        let mut events = [Event::NEW; EVENTS];
        if self.begins != Begins::New {
            events[0].row = Row::Sending(1, Lease::WaitedFor);
        }
        match self.begins {
            Begins::New => {}
            Begins::WithALateRelease => {
                events[0].statements.push(Statement::Release(1));
            }
            Begins::WithALostTakeOver => {
                events[0].mark = Some(0);
                events[0].emails.push(Email {
                    heard: false,
                    fate: Fate::NoAnswer,
                    claimed: Circumstances::default(),
                });
                messages[0] = Message::Invisible(Until::Timeout);
            }
        }
        State {
            messages,
            workers: [None; WORKERS],
            events,
            faults_left: self.faults,
            copies_left: self.copies,
            decisions_left: self.decisions,
        }
    }

    fn next(&self, now: &State) -> Vec<(Step, State)> {
        let mut next = Next::of(now, self);
        queue::next(&mut next);
        for (id, task) in now.tasks() {
            worker::next(&mut next, id, task);
        }
        for event in self.events() {
            ses::next(&mut next, event);
            feedback::next(&mut next, event);
            ledger::next(&mut next, event);
            operator::next(&mut next, event);
            usual::expire_lock(&mut next, event);
        }
        next.found()
    }

    /// Workers of one mode are alike, and so are two messages about one event.
    fn representative(&self, state: &State) -> State {
        let first = in_order(self, tidy::tidied(self, *state));
        if self.messages == [0, 0] {
            first.min(in_order(self, with_messages_swapped(first)))
        } else {
            first
        }
    }

    fn is_fault(step: &Step) -> bool {
        step.is_fault()
    }
}

fn in_order(design: &Design, mut state: State) -> State {
    if design.workers[0] == design.workers[1] && state.workers[0] > state.workers[1] {
        state.workers.swap(0, 1);
    }
    state
}

fn with_messages_swapped(mut state: State) -> State {
    let other = |message: &mut MessageId| *message = 1 - *message;
    state.messages.swap(0, 1);
    state
        .workers
        .iter_mut()
        .flatten()
        .for_each(|task| other(&mut task.message));
    let Event { mark, orphan, .. } = &mut state.events[0];
    mark.iter_mut().for_each(other);
    if let Some(Orphan {
        commit: Some(Commit::Doubt(by)),
    }) = orphan
    {
        other(by);
    }
    state
}
