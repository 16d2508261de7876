//! What is checked: a protocol, the world that it has to live in, and how much may go wrong there.

use crate::choices::{
    Begins, Fences, Held, LastRead, Leases, MarkRead, MarkStops, MarkedRows, Marks, Releases,
    Retries, Settles, Sweep, TakeOvers,
};
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
    /// How often an operator decides what becomes of a row that is held.
    pub decisions: u8,
    pub begins: Begins,
    pub mark_stops: MarkStops,
    pub mark_read: MarkRead,
    pub last_read: LastRead,
    pub marks: Marks,
    pub marked_rows: MarkedRows,
    pub fences: Fences,
    pub retries: Retries,
    pub take_overs: TakeOvers,
    pub releases: Releases,
    pub settles: Settles,
    pub held: Held,
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
    /// Postgres has done what it was asked, and its answer is lost. Not in `ANY`: it is what a lost connection comes
    /// to, where the statement on its way runs at once.
    LostReply,
}

pub const ANY: &[Fault] = &[
    Fault::Crash,
    Fault::LostAnswer,
    Fault::LostConnection,
    Fault::DeadLetter,
];

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
            decisions: 0,
            begins: Begins::New,
            mark_stops: MarkStops::OtherMessages,
            mark_read: MarkRead::AfterTheInsert,
            last_read: LastRead::MarksAndRow,
            marks: Marks::MayEndBetween,
            marked_rows: MarkedRows::AreLeft,
            fences: Fences::Unique,
            retries: Retries::KeepTheNumber,
            take_overs: TakeOvers::NumberAndMark,
            releases: Releases::WhatIsSending,
            settles: Settles::OfItsAttempt,
            held: Held::DeadLettered,
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

    /// An operator decides, at any time, and as often as this.
    pub const fn decisions(self, decisions: u8) -> Self {
        Self { decisions, ..self }
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

    /// Whether a worker is in transaction mode, so that there can be marks.
    pub fn has_marks(&self) -> bool {
        let transaction = |mode: &Mode| matches!(mode, Mode::Transaction(_));
        self.workers.iter().any(transaction)
    }

    pub fn events(&self) -> impl Iterator<Item = EventId> {
        0..=self.messages.iter().copied().max().unwrap_or(0)
    }
}

const _: () = assert!(MESSAGES == 2, "one_message and two_events name them all");
