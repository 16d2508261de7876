//! A connection on which a migration waits but shortly for its locks.
//!
//! `ALTER TABLE` waits for every transaction that uses the table, and all claims wait behind it: a session that
//! somebody left open would stop every email. So a migration that doesn't get its locks is undone and tried again.

use std::time::Duration;

use refinery::Migration;
use refinery_core::traits::r#async::{AsyncMigrate, AsyncQuery, AsyncTransaction};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::causes::causes;
use crate::clock::Deadline;

/// Claims wait longer than this for a lock, and so outlast it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Each transaction under our limits. They are set inside it, since a pooler may stand between.
pub(super) struct Patient<'a> {
    pub client: &'a mut Client,
    pub deadline: Deadline,
}

impl AsyncTransaction for Patient<'_> {
    type Error = tokio_postgres::Error;

    async fn execute<'a, T: Iterator<Item = &'a str> + Send + 'a>(
        &mut self,
        statements: T,
    ) -> Result<usize, Self::Error> {
        let transaction = self.client.transaction().await?;
        // Past the deadline nobody waits for it, while it would go on to hold its locks.
        let limits = format!(
            "SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = {}",
            LOCK_TIMEOUT.as_millis(),
            self.deadline.left().as_millis().max(1),
        );
        transaction.batch_execute(&limits).await?;
        let mut count = 0;
        for statement in statements {
            transaction.batch_execute(statement).await?;
            count += 1;
        }
        transaction.commit().await?;
        Ok(count)
    }
}

impl AsyncQuery<Vec<Migration>> for Patient<'_> {
    async fn query(&mut self, query: &str) -> Result<Vec<Migration>, Self::Error> {
        AsyncQuery::<Vec<Migration>>::query(self.client, query).await
    }
}

impl AsyncMigrate for Patient<'_> {}

/// Whether a migration didn't get its locks, and so changed nothing.
pub(super) fn found_locked(error: &refinery::Error) -> bool {
    causes(error)
        .filter_map(|error| error.downcast_ref::<tokio_postgres::Error>())
        .any(|error| error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
}
