//! All that the world remembers between two steps.

use crate::attempt::{Circumstances, Email, Request};
use crate::few::Few;

pub const MESSAGES: usize = 2;
pub const WORKERS: usize = 2;
pub const EVENTS: usize = 2;

pub type MessageId = u8;
pub type EventId = u8;
pub type WorkerId = usize;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct State {
    pub messages: [Message; MESSAGES],
    pub workers: [Option<Task>; WORKERS],
    pub events: [Event; EVENTS],
    /// What may still go wrong, and how often SQS may still hand out a message that is invisible.
    pub faults_left: u8,
    pub copies_left: u8,
    /// How often an operator may still decide what becomes of a row that is held.
    pub decisions_left: u8,
}

/// A message on the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Message {
    Visible,
    /// Received, and then perhaps reported; it comes back unless it is deleted first.
    Invisible(Until),
    /// Acknowledged.
    Deleted,
    /// In the dead-letter queue: moved there by SQS, since it was received too often, or by a worker, since its event
    /// is held.
    Dead,
}

/// When an invisible message is visible again, at the earliest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Until {
    /// The visibility timeout, or `IN_DOUBT_WAIT` where its report changed it to that: both are long.
    Timeout,
    /// A back-off, which may be short.
    BackOff,
}

/// What concerns one event: its row in the ledger, its emails, and what is still on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Event {
    /// As committed.
    pub row: Row,
    /// The mark that transaction mode leaves when it didn't learn SES's answer: of which message.
    pub mark: Option<MessageId>,
    /// An open transaction that holds the key, and whose worker is gone.
    pub orphan: Option<Orphan>,
    /// In the order in which SES accepted them.
    pub emails: Few<Email, 4>,
    /// Requests to SES that nobody waits for any more.
    pub requests: Few<Request, 3>,
    /// Statements to Postgres that nobody waits for any more.
    pub statements: Few<Statement, 3>,
    /// How often an operator has decided that it is to be sent again.
    pub resends: u8,
    /// Whether an operator has decided that it counts as sent.
    pub taken_for_sent: bool,
    /// Of the usual designs, the one with a lock outside the database: whether it is held.
    pub lock: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Row {
    Absent,
    Sending(Fence, Lease),
    Sent,
    /// Held: nobody sends it again by himself. It keeps the number of the attempt that was in doubt.
    Unknown(Fence),
}

/// The number of an attempt. A task that has none yet has nought.
pub type Fence = u8;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lease {
    Live,
    /// In doubt.
    RanOut,
    /// In doubt, and `IN_DOUBT_WAIT` is over.
    WaitedFor,
}

/// What Postgres may still receive from a worker that is gone: nothing more, or a `COMMIT`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Orphan {
    pub commit: Option<Commit>,
}

/// What a transaction commits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Commit {
    Sent,
    /// No claim, but the row that says that this message's send is in doubt.
    Doubt(MessageId),
}

/// A statement of lease mode, each a transaction of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Statement {
    /// With what the worker does with an event in doubt.
    Claim(InDoubt, Fence),
    /// As sent.
    Settle(Fence),
    /// Nothing was sent: the row is deleted.
    Release(Fence),
    /// Nobody knows: the lease ends now.
    Doubt(Fence),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InDoubt {
    Resend,
    Hold,
}

/// A worker at work on a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Task {
    pub message: MessageId,
    pub event: EventId,
    pub phase: Phase,
    /// Transaction mode: the transaction that holds the key.
    pub transaction: Transaction,
    /// Lease mode: which attempt it is.
    pub fence: Fence,
    pub claimed: Circumstances,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    Received,
    /// Its claim has begun, and may wait for a neighbour; whether the statement's snapshot shows a mark. Only where
    /// that matters: where a neighbour in transaction mode may leave one meanwhile.
    Waiting {
        saw_mark: bool,
    },
    /// Lease mode: its claim got no answer, and is to be sent again.
    ClaimingAgain,
    /// Lease mode: its claim is committed; whether there is a mark is to be read once more.
    Won,
    Claimed,
    Composed,
    Sending(Answer),
    /// SES has said no, or was never asked.
    NotSent,
    /// SES has said yes.
    Accepted(usize),
    /// SES's answer was lost, or late.
    NoAnswer,
    /// The email left, and a write of that failed: it is written again on another connection.
    WritingAgain(usize),
    /// The same for the release of what was not sent.
    ReleasingAgain,
    /// The same for what is in doubt.
    DoubtingAgain,
    /// The event is held: its message is to be moved to the dead-letter queue.
    Held,
    /// Nothing is left to do but to acknowledge the message.
    Done,
}

/// What has become of a request that a worker waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Answer {
    NotYet,
    /// Accepted, and the answer is on its way.
    Accepted(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transaction {
    None,
    Open,
    /// Postgres has rolled it back. The worker doesn't know yet.
    Cut,
}

impl Task {
    pub fn new(message: MessageId, event: EventId) -> Self {
        Self {
            message,
            event,
            phase: Phase::Received,
            transaction: Transaction::None,
            fence: 0,
            claimed: Circumstances::default(),
        }
    }
}

impl Event {
    pub const NEW: Self = Self {
        row: Row::Absent,
        mark: None,
        orphan: None,
        emails: Few::NONE,
        requests: Few::NONE,
        statements: Few::NONE,
        resends: 0,
        taken_for_sent: false,
        lock: false,
    };
}

impl State {
    pub fn event(&self, event: EventId) -> &Event {
        &self.events[usize::from(event)]
    }

    pub fn event_mut(&mut self, event: EventId) -> &mut Event {
        &mut self.events[usize::from(event)]
    }

    /// The task of a worker that has one.
    pub fn task(&mut self, worker: WorkerId) -> &mut Task {
        self.workers[worker].as_mut().expect("a worker at work")
    }

    pub fn tasks(&self) -> impl Iterator<Item = (WorkerId, Task)> {
        self.workers
            .into_iter()
            .enumerate()
            .filter_map(|(worker, task)| Some((worker, task?)))
    }

    pub fn tasks_on(&self, event: EventId) -> impl Iterator<Item = Task> {
        self.workers
            .into_iter()
            .flatten()
            .filter(move |task| task.event == event)
    }

    /// Whether an open transaction holds the event's key.
    pub fn is_locked(&self, event: EventId) -> bool {
        self.event(event).orphan.is_some()
            || self
                .tasks_on(event)
                .any(|task| task.transaction == Transaction::Open)
    }
}
