//! The details of the protocol in which a design can differ from what is built. What is built is
//! `Design::mixed`.

/// What there is when the search begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// Messages alone.
    New,
    /// A worker in lease mode has died as it released its row. The row's lease and `IN_DOUBT_WAIT` are over, and the
    /// release may still arrive.
    WithALateRelease,
    /// A worker in transaction mode has taken over such a row for message A. SES has the email, but its answer and the
    /// transaction are lost, so that the row is as it was, and the mark was written on another connection.
    WithALostTakeOver,
}

/// Whom the mark holds up with which transaction mode says that a send is in doubt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MarkStops {
    Everybody,
    /// Everybody but the message that wrote it, which SQS itself keeps back for as long.
    OtherMessages,
}

/// When a claim reads that mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MarkRead {
    /// In a statement after the insert, which may have waited for a neighbour. In lease mode the claim is committed
    /// by then, and reads it too.
    AfterTheInsert,
    /// In the insert itself (`INSERT ... SELECT ... WHERE NOT EXISTS`): its snapshot is older than its wait.
    InTheInsert,
}

/// What lease mode reads after its claim is committed, before it sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LastRead {
    Marks,
    /// And whether the row is still `sending`, and of its attempt.
    MarksAndRow,
}

/// Whether a mark's time can be over before a claim that didn't see it, and waited for it, is followed by the last read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    MayEndBetween,
    /// `IN_DOUBT_WAIT` is longer than an invocation.
    OutliveTheInvocation,
}

/// What transaction mode does with a row that may be taken over, where there is another message's mark too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MarkedRows {
    AreLeft,
    AreTakenOver,
}

/// How lease mode numbers its attempts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fences {
    /// Never twice the same: random, and chosen by the worker.
    Unique,
    /// From one, whenever a row is inserted.
    FromOne,
    /// Not at all.
    None,
    /// One number for all records of a batch, each of which takes the row with that number for its own.
    OfTheBatch,
}

/// What a claim is numbered that got no answer, and is sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    /// As before: a row with that number is its own.
    KeepTheNumber,
    TakeANewNumber,
}

/// How transaction mode leaves a row in doubt that it had taken over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TakeOvers {
    /// Without the number of the attempt before, and with a mark beside it.
    NumberAndMark,
    NumberAlone,
    MarkAlone,
    /// As it was, but for its lease, which ends now.
    Neither,
}

/// Which rows a release deletes, of those that have its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Releases {
    WhatIsSending,
    Anything,
}

/// Which row becomes `sent` when a worker knows that its email left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Settles {
    OfItsAttempt,
    OfAnyAttempt,
}

/// What becomes of the message of an event that is held.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Held {
    DeadLettered,
    Acknowledged,
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
