//! Settling in lease mode: the rows of a group, again and again until the deadline.

use crate::claim::{Locked, Settling, Written};
use crate::clock::Deadline;
use crate::database::{Connections, DatabaseError};

use super::{COMMIT_TIMEOUT, insist, within};

/// Writes what became of the rows; if that fails, on other connections until the deadline.
///
/// # Errors
/// Some of the rows may not be written. They are in doubt when their lease ends.
pub async fn settle_group(
    settling: &Settling<'_>,
    locked: Locked,
    connections: &Connections,
    deadline: Deadline,
) -> Result<Written, DatabaseError> {
    let first = async {
        let connection = connections.get(deadline).await?;
        settling.write(connection, locked).await
    };
    let error = match within(deadline.left_at_most(COMMIT_TIMEOUT), first).await {
        Ok(written) => return Ok(written),
        Err(error) => error,
    };
    tracing::warn!(
        settled = settling.settled.len(),
        released = settling.released.len(),
        in_doubt = settling.in_doubt.len(),
        code = error.code(),
        cause = error.cause(),
        "a batch could not be settled; settling it on another connection"
    );
    insist(connections, deadline, error, async |connection| {
        settling.write(connection, locked).await
    })
    .await
}
