//! How the time of an invocation is divided.
//!
//! ```text
//!  claim          send             settle   come back  answer
//! |-----|------------------------|-----------|---------|----| deadline
//!  a record isn't started with less than START left
//! ```

use std::time::Duration;

use crate::claim::Limits;
use crate::clock::Deadline;
use crate::send;

/// For the answer to reach Lambda.
const ANSWER: Duration = Duration::from_millis(200);
/// For telling SQS when failed messages come back, before the answer.
const COME_BACK: Duration = Duration::from_millis(500);
/// For the commit of a sent email, before that.
const SETTLE: Duration = Duration::from_millis(800);
/// With less than this a record is not started: SES could not answer in time, and the outcome of the send would
/// be unknown.
pub(super) const START: Duration = Duration::from_secs(5);
/// SES answers in well under a second; what takes longer than this is lost.
const MOST_SEND: Duration = Duration::from_secs(10);
/// A neighbour that holds the key is about to be done, or dead.
const MOST_LOCK: Duration = Duration::from_secs(5);
/// For statements that take milliseconds.
const MOST_STATEMENT: Duration = Duration::from_secs(5);

/// A lease outlives its invocation by this: what was sent to Postgres or SES just before the end has arrived or is
/// lost.
const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// A neighbour in transaction mode that holds one key of a batch is about to be done, or the others shall not wait.
const MOST_LOCK_OF_BATCH: Duration = Duration::from_secs(1);
/// Then each key waits by itself.
const MOST_LOCK_ALONE: Duration = Duration::from_millis(200);
/// For all claims of a batch, or all its recipients: milliseconds, and some seconds where one of them has to wait.
const MOST_STEP: Duration = Duration::from_secs(8);

/// When a record must be settled.
pub(super) fn settled_by(deadline: Deadline) -> Deadline {
    deadline.keeping(ANSWER + COME_BACK)
}

/// When work on the records is dropped, should it not have ended by itself.
pub(super) fn cut_off(deadline: Deadline) -> Deadline {
    deadline.keeping(ANSWER + COME_BACK / 2)
}

/// When SQS must have been told.
pub(super) fn told_by(deadline: Deadline) -> Deadline {
    deadline.keeping(ANSWER)
}

/// When a send must have ended.
pub(super) fn sent_by(deadline: Deadline) -> Deadline {
    settled_by(deadline).keeping(SETTLE)
}

/// How long a send may take, or `None` if there is too little time for one.
pub(super) fn send_timeout(deadline: Deadline) -> Option<Duration> {
    let timeout = sent_by(deadline).left_at_most(MOST_SEND);
    (timeout >= send::LEAST_TIME).then_some(timeout)
}

/// When a record must have been started.
pub(super) fn started_by(deadline: Deadline) -> Deadline {
    deadline.keeping(START)
}

/// When its claim must have ended.
pub(super) fn claimed_by(deadline: Deadline) -> Deadline {
    sent_by(deadline).keeping(send::LEAST_TIME)
}

/// What a claim may take that begins now.
pub(super) fn claim_limits(deadline: Deadline) -> Limits {
    let longest_send = sent_by(deadline).left_at_most(MOST_SEND);
    let most = claimed_by(deadline).left();
    let lock = MOST_LOCK.min(most / 2);
    let statement = (lock + MOST_STATEMENT).min(most);
    Limits {
        lock,
        statement,
        // While a send may still be underway the claim must hold; a worker that died gives it up soon after.
        idle: longest_send + SETTLE,
        answer: statement + Duration::from_millis(500),
    }
}

/// What Postgres may take for the claims of a batch, and for how long they hold.
pub(super) struct LeaseLimits {
    /// From now on.
    pub lease: Duration,
    /// For a neighbour that holds one of the keys.
    pub lock: Duration,
    /// The same, where each key is claimed by itself.
    pub lock_alone: Duration,
    /// For all of it, as seen from here.
    pub answer: Duration,
}

pub(super) fn lease_limits(deadline: Deadline) -> LeaseLimits {
    let most = claimed_by(deadline).left();
    LeaseLimits {
        lease: deadline.left() + LEASE_MARGIN,
        lock: MOST_LOCK_OF_BATCH.min(most / 4),
        lock_alone: MOST_LOCK_ALONE.min(most / 40),
        answer: MOST_STEP.min(most),
    }
}

/// What it may take to look up all recipients of a batch together. As much again and more is left to look them up one
/// by one.
pub(super) fn look_up_limit(deadline: Deadline) -> Duration {
    (started_by(deadline).left() / 3).min(MOST_STEP)
}

/// What it may take to look up one recipient, with so many to go, so that those who are found can be sent to.
pub(super) fn look_up_limit_of_one(deadline: Deadline, to_go: usize) -> Duration {
    let to_go = u32::try_from(to_go).unwrap_or(u32::MAX).max(1);
    (started_by(deadline).left() / to_go.saturating_add(1)).min(MOST_STATEMENT)
}
