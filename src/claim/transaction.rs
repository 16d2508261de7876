//! The claim in transaction mode: an insert in a transaction that stays open until the email is sent.

use std::time::Duration;

use futures_util::future::join4;
use tokio_postgres::types::{Json, Type};

use crate::database::{Connection, DatabaseError, DatabaseVerdict};
use crate::queue::MessageId;
use crate::receive::Event;

use super::claimed::Claimed;
use super::{Row, Standing, sql};

/// How a claim ended.
pub enum Claim {
    /// The key is ours, and the transaction open. There are as many rows as the folder's query found, two at
    /// the most.
    Won(Box<Claimed>, Vec<Row>),
    /// Somebody else had it.
    Lost(Standing),
}

/// How long Postgres may take, and how long it waits for us.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a neighbour that holds the key.
    pub lock: Duration,
    /// For a statement, the wait for a lock included.
    pub statement: Duration,
    /// For us, from the claim until the commit: a worker that died loses its claim after this.
    pub idle: Duration,
    /// For all of the claim, as seen from here.
    pub answer: Duration,
}

/// Claims the event's key and looks up its recipient, in one round trip: the statements go out together, none
/// waits for the answer to another. None is named and nothing outlives the transaction, so that a pooler in
/// transaction mode may stand between.
///
/// # Errors
/// Nothing is claimed.
pub async fn claim(
    connection: Connection,
    event: &Event<'_>,
    message_id: Option<&MessageId>,
    limits: Limits,
) -> Result<Claim, DatabaseError> {
    let opened = open(connection, event, message_id, limits);
    match tokio::time::timeout(limits.answer, opened).await {
        Ok(claim) => claim,
        Err(_) => Err(DatabaseError::NoAnswerInTime),
    }
}

async fn open(
    connection: Connection,
    event: &Event<'_>,
    message_id: Option<&MessageId>,
    limits: Limits,
) -> Result<Claim, DatabaseError> {
    let client = connection.client();
    let key = event.key.as_str();
    let hash = event.payload_hash.0.as_slice();
    let event_type = event.event_type();
    let begin = sql::begin(
        limits.lock.as_millis().max(1),
        limits.statement.as_millis().max(1),
        limits.idle.as_millis().max(1),
    );
    let message_id = message_id.map(MessageId::as_str);
    let payload = Json(&event.fields);
    let (begun, inserted, standing, rows) = join4(
        client.batch_execute(&begin),
        client.execute_typed(
            sql::CLAIM,
            &[
                (&key, Type::TEXT),
                (&event_type, Type::TEXT),
                (&hash, Type::BYTEA),
            ],
        ),
        client.query_typed(
            sql::STANDING,
            &[
                (&key, Type::TEXT),
                (&hash, Type::BYTEA),
                (&event_type, Type::TEXT),
                (&message_id, Type::TEXT),
            ],
        ),
        client.query_typed(event.folder.recipient_query(), &[(&payload, Type::JSONB)]),
    )
    .await;

    // In the order in which they were sent: after the first failure the others only say that the transaction
    // is aborted.
    let read = || -> Result<Read, DatabaseError> {
        begun?;
        let won = inserted? == 1;
        let standing = standing?;
        // Deleted in between, or `BEGIN` had no effect.
        let standing = standing.first().ok_or(DatabaseError::NoTransaction)?;
        if let Some(standing) = standing_of(standing, won)? {
            return Ok(Read::Lost(standing));
        }
        let rows = rows?
            .iter()
            .map(|row| row.try_get::<_, Json<Row>>(0).map(|row| row.0))
            .collect::<Result<_, _>>()
            .map_err(DatabaseError::UnreadableRow)?;
        Ok(Read::Won(rows))
    };
    match read() {
        Ok(Read::Won(rows)) => Ok(Claim::Won(Box::new(Claimed::new(connection, event)), rows)),
        Ok(Read::Lost(standing)) => {
            roll_back(connection).await;
            Ok(Claim::Lost(standing))
        }
        Err(error) => {
            // Where another connection may do better, this one must not come up again.
            if error.verdict() != DatabaseVerdict::TryAnotherConnection {
                roll_back(connection).await;
            }
            Err(error)
        }
    }
}

/// What the answers say.
enum Read {
    Won(Vec<Row>),
    Lost(Standing),
}

/// `None`: nothing stands in the way of whoever has won the key.
fn standing_of(
    row: &tokio_postgres::Row,
    won: bool,
) -> Result<Option<Standing>, tokio_postgres::Error> {
    if won {
        let in_doubt = row.try_get::<_, Option<f64>>("in_doubt_s")?;
        return Ok(in_doubt.map(|seconds| {
            Standing::InDoubt(Duration::try_from_secs_f64(seconds).unwrap_or_default())
        }));
    }
    if !row.try_get::<_, bool>("same_event")? {
        return Ok(Some(Standing::OtherPayload));
    }
    Ok(Some(match row.try_get::<_, &str>("outcome")? {
        "sending" | "unknown" => Standing::InProgress,
        _ => Standing::Settled,
    }))
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
