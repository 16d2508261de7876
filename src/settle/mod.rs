//! The email has left: its claim must stand, come what may.

use std::time::Duration;

use crate::claim::{Claimed, LedgerRecord, Settled};
use crate::clock::Deadline;
use crate::database::{Connections, DatabaseError};
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

async fn restore(
    record: &LedgerRecord,
    id: &SesMessageId,
    connections: &Connections,
    deadline: Deadline,
    mut last: DatabaseError,
) -> Settlement {
    while !deadline.left().is_zero() {
        let written = async {
            let connection = connections.get(deadline).await?;
            record.restore(connection, id).await
        };
        match within(deadline.left_at_most(TRY_TIMEOUT), written).await {
            Ok(true) => return Settlement::Restored,
            Ok(false) => return Settlement::AnotherEmail,
            Err(error) => last = error,
        }
        tokio::time::sleep(deadline.left_at_most(PAUSE_BETWEEN_TRIES)).await;
    }
    Settlement::NotWritten(last)
}

async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, DatabaseError>>,
) -> Result<T, DatabaseError> {
    tokio::time::timeout(timeout, work)
        .await
        .unwrap_or(Err(DatabaseError::NoAnswerInTime))
}
