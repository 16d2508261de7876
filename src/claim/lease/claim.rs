//! One statement for a batch's claims.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::types::Type;

use crate::claim::Standing;
use crate::claim::doubt::{DoubtPolicy, Sending};
use crate::config::InDoubt;
use crate::database::{Connection, DatabaseError, DatabaseVerdict};
use crate::queue::MessageId;
use crate::receive::Event;

use super::Attempt;

pub(in crate::claim) const CLAIM: &str = include_str!("claim.sql");

/// An event that asks for its key.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    pub event: &'a Event<'a>,
    pub message_id: Option<&'a MessageId>,
}

/// How the claim of one key ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeaseClaim {
    /// It is ours until the lease ends, and must be settled.
    Won,
    /// Somebody else had it.
    Lost(Standing),
}

/// What all claims of a batch have in common.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub attempt: Attempt,
    /// From now on.
    pub lease: Duration,
    pub doubt: DoubtPolicy,
    /// For a neighbour that has inserted a key and not yet ended its transaction.
    pub lock: Duration,
    /// The same, where each key is claimed by itself.
    pub lock_alone: Duration,
    /// For which the worker waits for an answer.
    pub answer: Duration,
}

/// By a neighbour of whom no more is known.
const IN_PROGRESS: LeaseClaim = LeaseClaim::Lost(Standing::InProgress(Duration::ZERO));

/// Claims the keys of the batch, each of which must be in it once. Their claims come back in the same order. Doing it
/// again with the same attempt, because the answer was lost, finds what was won before.
///
/// # Errors
/// Nothing is known of the claims; perhaps they stand.
pub async fn claim_all(
    connection: Connection,
    candidates: &[Candidate<'_>],
    terms: Terms,
) -> Result<Vec<Result<LeaseClaim, DatabaseError>>, DatabaseError> {
    let claims = match claim_some(&connection, candidates, terms, terms.lock).await {
        Ok(claims) => claims,
        Err(error) if befalls_all(&error) => return Err(error),
        Err(error) if candidates.len() == 1 => {
            connection.rest();
            return Ok(vec![of_one(error)]);
        }
        // A neighbour has one of the keys for longer, or Postgres doesn't take one of them: the others shall not
        // suffer for it.
        Err(_) => vec![None; candidates.len()],
    };
    let mut of_each = Vec::with_capacity(candidates.len());
    for (candidate, claim) in candidates.iter().zip(claims) {
        of_each.push(match claim {
            Some(claim) => Ok(claim),
            // Or a neighbour committed the key while the statement waited for it: what it committed isn't seen by a
            // statement that began before. The next one sees it.
            None => claim_alone(&connection, *candidate, terms).await?,
        });
    }
    connection.rest();
    Ok(of_each)
}

/// # Errors
/// The outer ones befall all events.
async fn claim_alone(
    connection: &Connection,
    candidate: Candidate<'_>,
    terms: Terms,
) -> Result<Result<LeaseClaim, DatabaseError>, DatabaseError> {
    match claim_some(connection, &[candidate], terms, terms.lock_alone).await {
        Ok(claims) => Ok(Ok(claims
            .into_iter()
            .next()
            .flatten()
            .unwrap_or(IN_PROGRESS))),
        Err(error) if befalls_all(&error) => Err(error),
        Err(error) => Ok(of_one(error)),
    }
}

/// Whether it says nothing of any one event: the connection, or our setup.
fn befalls_all(error: &DatabaseError) -> bool {
    matches!(
        error.verdict(),
        DatabaseVerdict::TryAnotherConnection | DatabaseVerdict::Ours
    )
}

/// What the error says of the only event of its statement.
fn of_one(error: DatabaseError) -> Result<LeaseClaim, DatabaseError> {
    if error.is_lock_timeout() {
        Ok(IN_PROGRESS)
    } else {
        Err(error)
    }
}

/// `None`: a neighbour was quicker, and how the key stands now isn't known.
async fn claim_some(
    connection: &Connection,
    candidates: &[Candidate<'_>],
    terms: Terms,
    lock: Duration,
) -> Result<Vec<Option<LeaseClaim>>, DatabaseError> {
    let events = || candidates.iter().map(|candidate| candidate.event);
    let keys: Vec<&str> = events().map(|event| event.key.as_str()).collect();
    let types: Vec<&str> = events().map(Event::event_type).collect();
    let hashes: Vec<&[u8]> = events()
        .map(|event| event.payload_hash.0.as_slice())
        .collect();
    let message_ids: Vec<Option<&str>> = candidates
        .iter()
        .map(|candidate| candidate.message_id.map(MessageId::as_str))
        .collect();
    let rows = connection
        .client()
        .query_typed(
            CLAIM,
            &[
                (&keys, Type::TEXT_ARRAY),
                (&types, Type::TEXT_ARRAY),
                (&hashes, Type::BYTEA_ARRAY),
                (&message_ids, Type::TEXT_ARRAY),
                (&terms.attempt.number(), Type::INT8),
                (&terms.lease.as_secs_f64(), Type::FLOAT8),
                (&terms.doubt.wait.as_secs_f64(), Type::FLOAT8),
                (&(terms.doubt.then == InDoubt::Hold), Type::BOOL),
                (&lock.as_millis().max(1).to_string(), Type::TEXT),
                (&terms.answer.as_secs_f64(), Type::FLOAT8),
            ],
        )
        .await?;
    let mut by_key = HashMap::with_capacity(rows.len());
    for row in &rows {
        by_key.insert(row.try_get::<_, &str>("event_id")?, read(row, terms.doubt)?);
    }
    Ok(keys
        .into_iter()
        .map(|key| by_key.get(key).copied().flatten())
        .collect())
}

fn read(
    row: &tokio_postgres::Row,
    doubt: DoubtPolicy,
) -> Result<Option<LeaseClaim>, tokio_postgres::Error> {
    if row.try_get("won")? {
        return Ok(Some(LeaseClaim::Won));
    }
    let in_doubt = row.try_get::<_, Option<f64>>("in_doubt_s")?;
    let in_doubt = in_doubt
        .map(|seconds| Standing::InDoubt(Duration::try_from_secs_f64(seconds).unwrap_or_default()));
    let Some(outcome) = row.try_get::<_, Option<&str>>("outcome")? else {
        return Ok(in_doubt.map(LeaseClaim::Lost));
    };
    if row.try_get::<_, Option<bool>>("same_event")? == Some(false) {
        return Ok(Some(LeaseClaim::Lost(Standing::OtherPayload)));
    }
    let standing = match outcome {
        "sending" => match doubt.sending(row.try_get("lease_s")?) {
            Sending::Not(standing) => standing,
            // Or another worker was quicker to decide what becomes of it.
            Sending::Overdue => in_doubt.unwrap_or(Standing::InProgress(Duration::ZERO)),
        },
        "unknown" => Standing::Held,
        // Another message of the event was quicker to tell the payload, and perhaps it is another one.
        _ if row.try_get::<_, Option<bool>>("payload_unknown")? == Some(true) => return Ok(None),
        _ => Standing::Settled,
    };
    Ok(Some(LeaseClaim::Lost(standing)))
}
