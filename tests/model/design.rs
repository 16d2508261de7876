//! What is checked: a protocol, the world that it has to live in, and how much may go wrong there.

use crate::state::{EventId, InDoubt, MESSAGES, WORKERS};

#[derive(Clone, Copy)]
pub struct Design {
    pub workers: [Mode; WORKERS],
    /// The event that each message is about.
    pub messages: &'static [EventId],
    pub notifications: Notifications,
    /// How many things may go wrong, and which.
    pub faults: u8,
    pub kinds: &'static [Fault],
    /// How often SQS may hand out a message that is invisible.
    pub copies: u8,
    pub doubt_row: DoubtRow,
    pub doubt_read: DoubtRead,
    pub fences: Fences,
    pub leases: Leases,
    pub sweep: Sweep,
}

/// How a worker goes about it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Transaction(InDoubt),
    Lease(InDoubt),
    // The usual designs.
    ClaimAndKeep,
    SendThenClaim,
    CheckThenMark,
    ExpiringLock,
}

/// When `feedback` processes SES's notification that it has accepted an email.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Notifications {
    /// There is no `feedback`.
    None,
    /// At any time: before SES's own answer, or long after everything else.
    Sometime,
    /// At any time, but before any of the event's long timers ends: visibility timeout, lease, `IN_DOUBT_WAIT`.
    InTime,
}

/// What can go wrong, and is counted. SES's refusals, waits for a lock, back-off and late timers aren't: they happen
/// as often as they like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A worker dies.
    Crash,
    /// SES's answer, or the request, is lost, or later than the worker waits.
    LostAnswer,
    /// Postgres, or the way to it, fails a worker.
    LostConnection,
    /// A message has been received as often as the redrive policy allows.
    DeadLetter,
}

pub const ANY: &[Fault] = &[
    Fault::Crash,
    Fault::LostAnswer,
    Fault::LostConnection,
    Fault::DeadLetter,
];

/// Whom the row holds up with which transaction mode says that a send is in doubt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DoubtRow {
    Everybody,
    /// Everybody but the message that wrote it, which SQS itself keeps back for as long.
    OtherMessages,
}

/// When a claim reads that row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DoubtRead {
    /// In a statement after the insert, which may have waited for a neighbour.
    AfterTheInsert,
    /// In the insert itself (`INSERT ... SELECT ... WHERE NOT EXISTS`): its snapshot is older than its wait.
    InTheInsert,
}

/// How lease mode numbers its attempts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fences {
    /// Never twice the same: from a sequence, or random.
    Unique,
    /// From one, whenever a row is inserted.
    FromOne,
    /// Not at all.
    None,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leases {
    OutliveTheInvocation,
    /// The lease can end while its worker is at work.
    MayEndBefore,
}

/// What becomes of a row in doubt whose messages are all gone from the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// A schedule makes it `unknown`, where it can be seen.
    ToUnknown,
    Never,
}

impl Design {
    /// Two workers of one mode and two messages about one event, and nothing going wrong.
    pub const fn of(mode: Mode) -> Self {
        Self::mixed(mode, mode)
    }

    pub const fn mixed(one: Mode, other: Mode) -> Self {
        Self {
            workers: [one, other],
            messages: &[0, 0],
            notifications: Notifications::Sometime,
            faults: 0,
            kinds: &[],
            copies: 0,
            doubt_row: DoubtRow::OtherMessages,
            doubt_read: DoubtRead::AfterTheInsert,
            fences: Fences::Unique,
            leases: Leases::OutliveTheInvocation,
            sweep: Sweep::ToUnknown,
        }
    }

    pub const fn faults(self, faults: u8, kinds: &'static [Fault]) -> Self {
        Self {
            faults,
            kinds,
            ..self
        }
    }

    pub const fn copies(self, copies: u8) -> Self {
        Self { copies, ..self }
    }

    pub const fn notifications(self, notifications: Notifications) -> Self {
        Self {
            notifications,
            ..self
        }
    }

    pub const fn one_message(self) -> Self {
        Self {
            messages: &[0],
            ..self
        }
    }

    pub const fn two_events(self) -> Self {
        Self {
            messages: &[0, 1],
            ..self
        }
    }

    pub fn events(&self) -> impl Iterator<Item = EventId> {
        0..=self.messages.iter().copied().max().unwrap_or(0)
    }
}

const _: () = assert!(MESSAGES == 2, "one_message and two_events name them all");
