//! How the time of an invocation is divided.
//!
//! ```text
//!  claim          send             settle          answer
//! |-----|------------------------|-----------------|----| deadline
//!  a record isn't started with less than START left
//! ```

use std::time::Duration;

use crate::claim::Limits;
use crate::clock::Deadline;

/// For the answer to reach Lambda.
pub(super) const ANSWER: Duration = Duration::from_millis(300);
/// Kept for the commit of a sent email, before the answer.
const SETTLE: Duration = Duration::from_millis(1200);
/// With less than this a record is not started: it could not be finished.
pub(super) const START: Duration = Duration::from_millis(2500);
/// With less than this an email is not sent: its outcome would be unknown.
const LEAST_SEND: Duration = Duration::from_millis(500);
/// SES answers in well under a second; what takes longer than this is lost.
const MOST_SEND: Duration = Duration::from_secs(10);
/// A neighbour that holds the key is about to be done, or dead.
const MOST_LOCK: Duration = Duration::from_secs(5);
/// For statements that take milliseconds.
const MOST_STATEMENT: Duration = Duration::from_secs(5);

/// When a record must be settled.
pub(super) fn settled_by(deadline: Deadline) -> Deadline {
    deadline.keeping(ANSWER)
}

/// When a send must have ended.
pub(super) fn sent_by(deadline: Deadline) -> Deadline {
    deadline.keeping(ANSWER + SETTLE)
}

/// How long a send may take, or `None` if there is too little time for one.
pub(super) fn send_timeout(deadline: Deadline) -> Option<Duration> {
    let timeout = sent_by(deadline).left_at_most(MOST_SEND);
    (timeout >= LEAST_SEND).then_some(timeout)
}

/// What a claim may take that begins now.
pub(super) fn claim_limits(deadline: Deadline) -> Limits {
    let send = sent_by(deadline).left_at_most(MOST_SEND);
    let most = sent_by(deadline).left().saturating_sub(LEAST_SEND);
    let lock = MOST_LOCK.min(most / 2);
    let statement = (lock + MOST_STATEMENT).min(most);
    Limits {
        lock,
        statement,
        // While a send may still be underway the claim must hold; a worker that died gives it up soon after.
        idle: send + SETTLE,
        answer: statement + Duration::from_millis(500),
    }
}
