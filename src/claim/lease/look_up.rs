//! Whom to write to, for all events of a batch that were claimed.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::{join_all, join4};
use tokio_postgres::Client;
use tokio_postgres::types::{Json, Type};

use crate::claim::{Row, Standing, read_rows};
use crate::database::{Connection, DatabaseError};
use crate::queue::MessageId;

use super::{Attempt, Candidate};

/// What the claim could not see: marks of a neighbour in transaction mode for which it waited, and what SES told of an
/// earlier attempt since.
const STANDING: &str = "\
    SELECT event.event_id,
           extract(epoch FROM doubt.in_doubt_until - clock_timestamp())::float8 AS in_doubt_s,
           ledger.outcome,
           ledger.attempt IS NOT DISTINCT FROM $3 AS ours
      FROM unnest($1, $2) AS event (event_id, message_id)
      LEFT JOIN processed_events AS ledger ON ledger.event_id = event.event_id
      LEFT JOIN sends_in_doubt AS doubt ON doubt.event_id = event.event_id
                                       AND doubt.in_doubt_until > clock_timestamp()
                                       AND doubt.message_id IS DISTINCT FROM event.message_id";

/// What stands in the way of a claimed event, or nothing.
#[derive(Debug)]
pub enum Found {
    /// As many rows as the folder's query found, two at the most.
    Rows(Vec<Row>),
    /// Another message's send of the same event is in doubt for this long. The row is ours.
    InDoubt(Duration),
    /// The row is not ours any more.
    Lost(Standing),
}

type Rows = Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>;

/// Asks for all events in one round trip, whatever kinds of email they are: the statements go out together, each of
/// which may take as long as `statement`. What is found comes back in the order of the events.
///
/// # Errors
/// Nothing was found. Where there is more than one event, it may be the query of one of them that failed.
pub async fn look_up(
    connection: Connection,
    attempt: Attempt,
    claimed: &[Candidate<'_>],
    statement: Duration,
) -> Result<Vec<Found>, DatabaseError> {
    let keys: Vec<&str> = claimed
        .iter()
        .map(|candidate| candidate.event.key.as_str())
        .collect();
    let message_ids: Vec<Option<&str>> = claimed
        .iter()
        .map(|candidate| candidate.message_id.map(MessageId::as_str))
        .collect();
    let client = connection.client();
    let begin = begin(statement);
    let (begun, standings, rows, ended) = join4(
        client.batch_execute(&begin),
        client.query_typed(
            STANDING,
            &[
                (&keys, Type::TEXT_ARRAY),
                (&message_ids, Type::TEXT_ARRAY),
                (&attempt.number(), Type::INT8),
            ],
        ),
        join_all(claimed.iter().map(|candidate| query(client, *candidate))),
        // There is nothing to commit.
        client.batch_execute("ROLLBACK"),
    )
    .await;
    // In the order in which they were sent: after the first failure the others only say that the transaction is
    // aborted.
    let read = || -> Result<Vec<Found>, DatabaseError> {
        begun?;
        let standings = standings?;
        let mut in_the_way = in_the_way(&standings)?;
        let mut found = Vec::with_capacity(claimed.len());
        for (key, rows) in keys.iter().zip(rows) {
            found.push(match in_the_way.remove(key) {
                // Whom the email would be for doesn't matter any more, and neither does it if that query failed.
                Some(found) => found,
                None => Found::Rows(read_rows(&rows?)?),
            });
        }
        Ok(found)
    };
    let found = read();
    if ended.is_ok() {
        connection.rest();
    }
    found
}

fn begin(statement: Duration) -> String {
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL statement_timeout = {}",
        statement.as_millis().max(1)
    )
}

async fn query(client: &Client, candidate: Candidate<'_>) -> Rows {
    let event = candidate.event;
    let payload = Json(&event.fields);
    let query = event.folder.recipient_query();
    client.query_typed(query, &[(&payload, Type::JSONB)]).await
}

/// By key.
fn in_the_way(rows: &[tokio_postgres::Row]) -> Result<HashMap<&str, Found>, tokio_postgres::Error> {
    let mut in_the_way = HashMap::new();
    for row in rows {
        let outcome = row.try_get::<_, Option<&str>>("outcome")?;
        let found = match outcome {
            Some("sending") if row.try_get("ours")? => {
                let Some(seconds) = row.try_get::<_, Option<f64>>("in_doubt_s")? else {
                    continue;
                };
                Found::InDoubt(Duration::try_from_secs_f64(seconds).unwrap_or_default())
            }
            Some("sending") | None => Found::Lost(Standing::InProgress(Duration::ZERO)),
            Some("unknown") => Found::Lost(Standing::Held),
            Some(_) => Found::Lost(Standing::Settled),
        };
        in_the_way.insert(row.try_get("event_id")?, found);
    }
    Ok(in_the_way)
}
