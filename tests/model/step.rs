//! Steps, told as sentences, and the list of those that can follow a state.

use std::fmt::{Display, Formatter, Result};

use crate::design::{Design, Fault};
use crate::state::{MessageId, State, Task, WorkerId};

/// Who does what.
#[derive(Clone, Copy)]
pub struct Step {
    who: Who,
    does: &'static str,
    is_fault: bool,
}

#[derive(Clone, Copy)]
pub enum Who {
    Worker(WorkerId, MessageId),
    Message(MessageId),
    Postgres,
    Ses,
    Feedback,
    Time,
    Cleanup,
    Operator,
}

/// Collects what can follow.
pub struct Next<'a> {
    pub now: &'a State,
    pub design: &'a Design,
    found: Vec<(Step, State)>,
}

impl<'a> Next<'a> {
    pub fn of(now: &'a State, design: &'a Design) -> Self {
        Self {
            now,
            design,
            found: Vec::new(),
        }
    }

    /// Something that happens when all goes as it should, or so often that it isn't counted.
    pub fn step(&mut self, who: Who, does: &'static str, change: impl FnOnce(&mut State)) {
        self.add(
            Step {
                who,
                does,
                is_fault: false,
            },
            change,
        );
    }

    /// Something that goes wrong, if enough hasn't yet.
    pub fn fault(
        &mut self,
        fault: Fault,
        who: Who,
        does: &'static str,
        change: impl FnOnce(&mut State),
    ) {
        if self.now.faults_left > 0 && self.design.kinds.contains(&fault) {
            self.add(
                Step {
                    who,
                    does,
                    is_fault: true,
                },
                |state| {
                    state.faults_left -= 1;
                    change(state);
                },
            );
        }
    }

    /// SQS delivers at least once. No fault of anybody's, but nothing may rely on it.
    pub fn copy(&mut self, who: Who, does: &'static str, change: impl FnOnce(&mut State)) {
        if self.now.copies_left > 0 {
            self.at_will(who, does, |state| {
                state.copies_left -= 1;
                change(state);
            });
        }
    }

    /// An operator's decision.
    pub fn decision(&mut self, does: &'static str, change: impl FnOnce(&mut State)) {
        if self.now.decisions_left > 0 {
            self.at_will(Who::Operator, does, |state| {
                state.decisions_left -= 1;
                change(state);
            });
        }
    }

    /// What nothing may rely on.
    pub fn at_will(&mut self, who: Who, does: &'static str, change: impl FnOnce(&mut State)) {
        self.add(
            Step {
                who,
                does,
                is_fault: true,
            },
            change,
        );
    }

    /// Steps that change nothing are left out.
    fn add(&mut self, step: Step, change: impl FnOnce(&mut State)) {
        let mut state = *self.now;
        change(&mut state);
        if state != *self.now {
            self.found.push((step, state));
        }
    }

    pub fn found(self) -> Vec<(Step, State)> {
        self.found
    }
}

impl Step {
    pub fn is_fault(&self) -> bool {
        self.is_fault
    }
}

impl Who {
    pub fn is(worker: WorkerId, task: Task) -> Self {
        Self::Worker(worker, task.message)
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mark = if self.is_fault { " (!)" } else { "" };
        write!(f, "{} {}{mark}", self.who, self.does)
    }
}

impl Display for Who {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let letter = |message: &MessageId| char::from(b'A' + message);
        match self {
            Self::Worker(worker, message) => {
                write!(f, "worker {} (message {})", worker + 1, letter(message))
            }
            Self::Message(message) => write!(f, "message {}", letter(message)),
            Self::Postgres => f.write_str("Postgres"),
            Self::Ses => f.write_str("SES"),
            Self::Feedback => f.write_str("feedback"),
            Self::Time => f.write_str("time:"),
            Self::Cleanup => f.write_str("cleanup"),
            Self::Operator => f.write_str("an operator"),
        }
    }
}
