//! The statements that matter to the chronicle.

use std::time::Duration;

use super::wire::Message;

pub enum Statement {
    /// Transaction mode: the key is inserted, in a transaction that stays open.
    Claim { key: String },
    /// The same transaction gives it up, since nobody knows whether the email left.
    Unclaim,
    /// `feedback` writes what SES said.
    Told { key: String, ses_message_id: String },
    /// Lease mode.
    OfBatch(Batch),
}

/// A statement of lease mode: for many keys at once, and committed by itself.
pub struct Batch {
    pub does: Does,
    pub attempt: i64,
    pub keys: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub enum Does {
    Claim { lease: Duration },
    Settle,
    Release,
    LeaveInDoubt,
}

impl Statement {
    /// What this SQL does with these values.
    pub fn read(sql: &str, values: &Message) -> Option<Self> {
        let text = |number| values.text(number).unwrap_or_default().to_owned();
        if sql.contains("inserted AS (") {
            let lease = values.number(5).map(f64::from_be_bytes).unwrap_or_default();
            let lease = Duration::from_secs_f64(lease);
            return Some(Self::OfBatch(Batch {
                does: Does::Claim { lease },
                attempt: attempt(values, 4),
                keys: values.texts(0),
            }));
        }
        // Each by words that no other one has.
        let of_attempt = [
            ("settled.outcome", Does::Settle),
            ("DELETE FROM processed_events", Does::Release),
            ("SET lease_until = clock_timestamp()", Does::LeaveInDoubt),
        ];
        if sql.contains("ledger.attempt = $1") {
            let mut all = of_attempt.into_iter();
            let (_, does) = all
                .find(|(words, _)| sql.contains(words))
                .unwrap_or_else(|| panic!("the storm doesn't know this statement: {sql}"));
            return Some(Self::OfBatch(Batch {
                does,
                attempt: attempt(values, 0),
                keys: values.texts(1),
            }));
        }
        if sql.starts_with("INSERT INTO processed_events (") {
            return Some(Self::Claim { key: text(0) });
        }
        if sql.starts_with("INSERT INTO processed_events AS") && sql.contains("'ses'") {
            return Some(Self::Told {
                key: text(0),
                ses_message_id: text(2),
            });
        }
        sql.starts_with("DELETE FROM processed_events")
            .then_some(Self::Unclaim)
    }
}

fn attempt(values: &Message, number: usize) -> i64 {
    values
        .number(number)
        .map(i64::from_be_bytes)
        .unwrap_or_default()
}
