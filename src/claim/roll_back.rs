//! The end of a transaction that claims nothing.

use std::time::Duration;

use crate::database::{Connection, DatabaseError, DatabaseVerdict};

/// Where another connection may do better, this one must not come up again.
pub(super) async fn give_back(connection: Connection, error: DatabaseError) -> DatabaseError {
    if error.verdict() != DatabaseVerdict::TryAnotherConnection {
        roll_back(connection).await;
    }
    error
}

/// A connection that can't even roll back is closed, which rolls back too.
pub(super) async fn roll_back(connection: Connection) {
    const PATIENCE: Duration = Duration::from_secs(1);
    let rolled_back = connection.client().batch_execute("ROLLBACK");
    if matches!(
        tokio::time::timeout(PATIENCE, rolled_back).await,
        Ok(Ok(()))
    ) {
        connection.rest();
    }
}
