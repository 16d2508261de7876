//! The email has left, or may have: the ledger must say so, come what may.

use std::time::Duration;

use crate::claim::{Claimed, Doubt, LedgerRecord, Settled};
use crate::clock::Deadline;
use crate::database::{Connection, Connections, DatabaseError};
use crate::send::SesMessageId;

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

/// A commit takes milliseconds; one that takes longer is lost, or its answer is.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than a commit: while the lost transaction still holds the key, Postgres makes us wait.
const TRY_TIMEOUT: Duration = Duration::from_secs(4);
const PAUSE_BETWEEN_TRIES: Duration = Duration::from_millis(100);

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

/// Writes on one connection after another until it succeeds or the deadline comes; then `last` is what failed.
async fn insist<T>(
    connections: &Connections,
    deadline: Deadline,
    mut last: DatabaseError,
    write: impl AsyncFn(Connection) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    while !deadline.left().is_zero() {
        let written = async { write(connections.get(deadline).await?).await };
        match within(deadline.left_at_most(TRY_TIMEOUT), written).await {
            Ok(written) => return Ok(written),
            Err(error) => last = error,
        }
        tokio::time::sleep(deadline.left_at_most(PAUSE_BETWEEN_TRIES)).await;
    }
    Err(last)
}

async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, DatabaseError>>,
) -> Result<T, DatabaseError> {
    tokio::time::timeout(timeout, work)
        .await
        .unwrap_or(Err(DatabaseError::NoAnswerInTime))
}
