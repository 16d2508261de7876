//! The claim in transaction mode: an insert in a transaction that stays open until the email is sent.

use std::time::Duration;

use futures_util::future::join4;
use tokio_postgres::types::{Json, Type};

use crate::database::{Connection, DatabaseError};
use crate::queue::MessageId;
use crate::receive::Event;

use super::claimed::Claimed;
use super::doubt::{DoubtPolicy, Sending};
use super::existing::{decide, learn_payload};
use super::roll_back::{give_back, roll_back};
use super::{Claim, Row, Standing, read_rows, sql};

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
    doubt: DoubtPolicy,
) -> Result<Claim, DatabaseError> {
    let opened = open(connection, event, message_id, limits, doubt);
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
    doubt: DoubtPolicy,
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
        match standing_of(standing, won, doubt)? {
            Key::Ours => Ok(Read::Won(read_rows(&rows?)?)),
            Key::Overdue => Ok(Read::Overdue(rows)),
            Key::SettledUnread => Ok(Read::SettledUnread(rows)),
            Key::Not(standing) => Ok(Read::Lost(standing)),
        }
    };
    match read() {
        Ok(Read::Won(rows)) => Ok(Claim::Won(Box::new(Claimed::new(connection, event)), rows)),
        Ok(Read::Overdue(rows)) => decide(connection, event, doubt, rows, &begin).await,
        // Whom the email was for doesn't matter, and neither does it if that query failed.
        Ok(Read::SettledUnread(rows)) => {
            learn_payload(connection, event, rows.is_err().then_some(&begin)).await
        }
        Ok(Read::Lost(standing)) => {
            roll_back(connection).await;
            Ok(Claim::Lost(standing))
        }
        Err(error) => Err(give_back(connection, error).await),
    }
}

/// What the answers say.
enum Read {
    Won(Vec<Row>),
    /// A send in doubt that is to be decided; and what the query for its recipient said.
    Overdue(Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>),
    SettledUnread(Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>),
    Lost(Standing),
}

/// Whose the key is.
enum Key {
    Ours,
    Overdue,
    /// SES settled it, and no message of the event was seen since.
    SettledUnread,
    Not(Standing),
}

fn standing_of(
    row: &tokio_postgres::Row,
    won: bool,
    doubt: DoubtPolicy,
) -> Result<Key, tokio_postgres::Error> {
    let in_doubt = row.try_get::<_, Option<f64>>("in_doubt_s")?.map(|seconds| {
        Key::Not(Standing::InDoubt(
            Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        ))
    });
    if won {
        return Ok(in_doubt.unwrap_or(Key::Ours));
    }
    if !row.try_get::<_, bool>("same_event")? {
        return Ok(Key::Not(Standing::OtherPayload));
    }
    Ok(match row.try_get::<_, &str>("outcome")? {
        "sending" => match doubt.sending(row.try_get("lease_s")?) {
            // A worker that had taken it over before lost its transaction, and could but leave a mark.
            Sending::Overdue => in_doubt.unwrap_or(Key::Overdue),
            Sending::Not(standing) => Key::Not(standing),
        },
        "unknown" => Key::Not(Standing::Held),
        _ if row.try_get("payload_unknown")? => Key::SettledUnread,
        _ => Key::Not(Standing::Settled),
    })
}
