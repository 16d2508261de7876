//! The email has left, or may have: the ledger must say so, come what may.

mod lease;
mod transaction;

pub use lease::settle_group;
pub use transaction::{Settlement, settle_in_doubt, settle_sent};

use std::time::Duration;

use crate::clock::Deadline;
use crate::database::{Connection, Connections, DatabaseError};

/// A commit takes milliseconds; one that takes longer is lost, or its answer is.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than a commit: while the lost transaction still holds the key, Postgres makes us wait.
const TRY_TIMEOUT: Duration = Duration::from_secs(4);
const PAUSE_BETWEEN_TRIES: Duration = Duration::from_millis(100);

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
