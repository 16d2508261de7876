//! The event's key is claimed: inserted into the ledger by whoever will send the email, and by nobody else.

mod claimed;
mod doubt;
mod existing;
mod lease;
mod roll_back;
mod sql;
mod transaction;

pub use claimed::{Claimed, Doubt, LedgerRecord, Settled};
pub use doubt::DoubtPolicy;
pub use lease::{
    Attempt, Candidate, Found, LeaseClaim, Locked, Settling, Terms, Written, claim_all, look_up,
};
pub use transaction::{Limits, claim};

use std::time::Duration;

use serde_json::{Map, Value};
use tokio_postgres::types::Json;

use crate::database::DatabaseError;

/// The row of the folder's `recipient.sql`: whom to write to, and what the templates use.
pub type Row = Map<String, Value>;

/// How a claim in transaction mode ended.
pub enum Claim {
    /// The key is ours, and the transaction open. There are as many rows as the folder's query found, two at
    /// the most.
    Won(Box<Claimed>, Vec<Row>),
    /// Somebody else had it.
    Lost(Standing),
}

/// What stands in the ledger under a key that was claimed before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// The same event, handled: this one is a duplicate.
    Settled,
    /// The same event, claimed by a worker whose lease ends after this long.
    InProgress(Duration),
    /// A send of the same event is in doubt, and SES's word may come for this long.
    InDoubt(Duration),
    /// A send of the same event is in doubt, SES's word has not come, and it is not made again by itself.
    Held,
    /// Another event under the same key. Skipping it would lose its email.
    OtherPayload,
}

/// What a claim asks Postgres in each mode.
#[cfg(test)]
pub(crate) fn statements_of_a_claim() -> [String; 2] {
    [
        [sql::CLAIM, sql::STANDING].concat(),
        lease::CLAIM.to_owned(),
    ]
}

fn read_rows(rows: &[tokio_postgres::Row]) -> Result<Vec<Row>, DatabaseError> {
    rows.iter()
        .map(|row| row.try_get::<_, Json<Row>>(0).map(|row| row.0))
        .collect::<Result<_, _>>()
        .map_err(DatabaseError::UnreadableRow)
}
