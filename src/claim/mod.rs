//! The event's key is claimed: inserted into the ledger by whoever will send the email, and by nobody else.

mod claimed;
mod sql;
mod transaction;

pub use claimed::{Claimed, Doubt, LedgerRecord, Settled};
pub use transaction::{Claim, Limits, claim};

use std::time::Duration;

use serde_json::{Map, Value};

/// The row of the folder's `recipient.sql`: whom to write to, and what the templates use.
pub type Row = Map<String, Value>;

/// What stands in the ledger under a key that was claimed before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// The same event, handled: this one is a duplicate.
    Settled,
    /// The same event, claimed under a lease by a worker in lease mode.
    InProgress,
    /// Free, but another message's send of the same event is in doubt for this long.
    InDoubt(Duration),
    /// Another event under the same key. Skipping it would lose its email.
    OtherPayload,
}
