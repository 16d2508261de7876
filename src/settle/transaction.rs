//! Settling in transaction mode: the commit of the claim, and what replaces it if it fails.

use crate::claim::{Claimed, Doubt, LedgerRecord, Settled};
use crate::clock::Deadline;
use crate::database::{Connections, DatabaseError};
use crate::send::SesMessageId;

use super::{COMMIT_TIMEOUT, insist, within};

/// How the claim of a sent email ended.
#[derive(Debug)]
pub enum Settlement {
    Settled,
    /// The commit failed, and the claim was written again.
    Restored,
    /// The ledger tells of another email for the same event.
    AnotherEmail,
    /// Nobody knows whether the claim stands.
    NotWritten(DatabaseError),
}

/// Commits the claim with SES's message id; if that fails, writes it on other connections until the deadline.
pub async fn settle_sent(
    claimed: Claimed,
    id: &SesMessageId,
    connections: &Connections,
    deadline: Deadline,
) -> Settlement {
    let record = claimed.record().clone();
    let commit = claimed.commit(Settled::Sent(id));
    let error = match within(deadline.left_at_most(COMMIT_TIMEOUT), commit).await {
        Ok(()) => return Settlement::Settled,
        Err(error) => error,
    };
    tracing::warn!(
        event_id = %record.key,
        code = error.code(),
        cause = error.cause(),
        "the commit of a sent email failed; writing its claim on another connection"
    );
    restore(&record, id, connections, deadline, error).await
}

/// Frees the key of an email that may have left, and marks it; if that fails, the mark is written on other
/// connections until the deadline.
///
/// # Errors
/// There is no mark.
pub async fn settle_in_doubt(
    claimed: Claimed,
    doubt: Doubt<'_>,
    connections: &Connections,
    deadline: Deadline,
) -> Result<(), DatabaseError> {
    let record = claimed.record().clone();
    let left = claimed.leave_in_doubt(&doubt);
    match within(deadline.left_at_most(COMMIT_TIMEOUT), left).await {
        Ok(()) => Ok(()),
        Err(error) => {
            insist(connections, deadline, error, async |connection| {
                record.mark_in_doubt(connection, &doubt).await
            })
            .await
        }
    }
}

async fn restore(
    record: &LedgerRecord,
    id: &SesMessageId,
    connections: &Connections,
    deadline: Deadline,
    last: DatabaseError,
) -> Settlement {
    let written = insist(connections, deadline, last, async |connection| {
        record.restore(connection, id).await
    });
    match written.await {
        Ok(true) => Settlement::Restored,
        Ok(false) => Settlement::AnotherEmail,
        Err(error) => Settlement::NotWritten(error),
    }
}
