//! A claim that was won and is not settled yet.

use std::time::Duration;

use futures_util::future::{join, join4};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::database::{Connection, DatabaseError};
use crate::queue::MessageId;
use crate::receive::{Event, IdempotencyKey, PayloadHash};
use crate::send::SesMessageId;

use super::roll_back::roll_back;
use super::sql;

/// An open transaction that holds the key. Dropped, it is rolled back and the key is free again.
#[must_use]
pub struct Claimed {
    connection: Connection,
    record: LedgerRecord,
}

/// What the ledger says of an event.
#[derive(Clone)]
pub struct LedgerRecord {
    pub key: IdempotencyKey,
    pub event_type: String,
    pub payload_hash: PayloadHash,
}

/// Outcomes that end a claim.
#[derive(Clone, Copy, Debug)]
pub enum Settled<'a> {
    Sent(&'a SesMessageId),
    Skipped,
    Withheld,
}

impl<'a> Settled<'a> {
    /// `outcome` and `ses_message_id`.
    pub(super) fn columns(self) -> (&'static str, Option<&'a str>) {
        match self {
            Self::Sent(id) => ("sent", Some(id.as_str())),
            Self::Skipped => ("skipped", None),
            Self::Withheld => ("withheld", None),
        }
    }
}

impl Claimed {
    pub(super) fn new(connection: Connection, event: &Event<'_>) -> Self {
        Self {
            connection,
            record: LedgerRecord {
                key: event.key.clone(),
                event_type: event.event_type().to_owned(),
                payload_hash: event.payload_hash,
            },
        }
    }

    pub fn record(&self) -> &LedgerRecord {
        &self.record
    }

    /// Whether the connection that holds the claim is open, as far as is known here.
    pub fn holds(&self) -> bool {
        !self.connection.client().is_closed()
    }

    /// Records the outcome and commits, in one round trip.
    ///
    /// # Errors
    /// The claim may be committed or not: the answer, too, can be lost.
    pub async fn commit(self, outcome: Settled<'_>) -> Result<(), DatabaseError> {
        let (word, ses_message_id) = outcome.columns();
        let client = self.connection.client();
        let (updated, committed) = join(
            client.execute_typed(
                sql::SET_OUTCOME,
                &[
                    (&self.record.key.as_str(), Type::TEXT),
                    (&word, Type::TEXT),
                    (&ses_message_id, Type::TEXT),
                ],
            ),
            client.batch_execute("COMMIT"),
        )
        .await;
        // A `COMMIT` after a failed update answers with success, and has rolled back.
        let updated = updated?;
        committed?;
        self.connection.rest();
        if updated == 1 {
            Ok(())
        } else {
            Err(DatabaseError::NoTransaction)
        }
    }

    /// Frees the key, since nobody knows whether the email has left: at once for the message of `doubt`, which
    /// SQS keeps back for as long as SES's word may take, and after that time for any other message of the event.
    ///
    /// # Errors
    /// The key is free, perhaps for all of them.
    pub async fn leave_in_doubt(self, doubt: &Doubt<'_>) -> Result<(), DatabaseError> {
        let key = self.record.key.as_str();
        let client = self.connection.client();
        let (unclaimed, stayed, marked, committed) = join4(
            client.execute_typed(sql::UNCLAIM, &[(&key, Type::TEXT)]),
            client.execute_typed(sql::STAY_IN_DOUBT, &[(&key, Type::TEXT)]),
            doubt.mark(client, key),
            client.batch_execute("COMMIT"),
        )
        .await;
        unclaimed?;
        stayed?;
        marked?;
        committed?;
        self.connection.rest();
        Ok(())
    }

    /// Frees the key for the next try.
    pub async fn release(self) {
        roll_back(self.connection).await;
    }
}

/// A send of which nobody knows whether it reached SES.
#[derive(Clone, Copy)]
pub struct Doubt<'a> {
    /// The message that it was made for.
    pub message_id: Option<&'a MessageId>,
    /// For how long SES's word may still come.
    pub wait: Duration,
}

impl Doubt<'_> {
    async fn mark(&self, client: &Client, key: &str) -> Result<u64, tokio_postgres::Error> {
        let message_id = self.message_id.map(MessageId::as_str);
        client
            .execute_typed(
                sql::MARK_IN_DOUBT,
                &[
                    (&key, Type::TEXT),
                    (&message_id, Type::TEXT),
                    (&self.wait.as_secs_f64(), Type::FLOAT8),
                ],
            )
            .await
    }
}

impl LedgerRecord {
    /// The mark of [`Claimed::leave_in_doubt`] alone, on a connection of its own.
    ///
    /// # Errors
    /// It could not be written on this connection.
    pub async fn mark_in_doubt(
        &self,
        connection: Connection,
        doubt: &Doubt<'_>,
    ) -> Result<(), DatabaseError> {
        doubt.mark(connection.client(), self.key.as_str()).await?;
        connection.rest();
        Ok(())
    }

    /// Writes the claim of an email that has left, on a connection of its own. Returns whether the ledger now
    /// tells of this very email.
    ///
    /// # Errors
    /// It could not be written on this connection.
    pub async fn restore(
        &self,
        connection: Connection,
        id: &SesMessageId,
    ) -> Result<bool, DatabaseError> {
        let rows = connection
            .client()
            .query_typed(
                sql::RESTORE,
                &[
                    (&self.key.as_str(), Type::TEXT),
                    (&self.event_type.as_str(), Type::TEXT),
                    (&id.as_str(), Type::TEXT),
                    (&self.payload_hash.0.as_slice(), Type::BYTEA),
                ],
            )
            .await?;
        connection.rest();
        match rows.first() {
            Some(row) => Ok(row.try_get::<_, Option<bool>>(0)?.unwrap_or(false)),
            None => Ok(false),
        }
    }
}
