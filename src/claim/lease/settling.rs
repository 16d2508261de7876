//! What becomes of the rows that an attempt has claimed. Each statement is of this attempt's rows alone: where another
//! one has a row by now, nothing is changed.

use std::collections::HashSet;

use tokio_postgres::types::{ToSql, Type};

use crate::claim::Settled;
use crate::database::{Connection, DatabaseError};

use super::Attempt;

/// What SES has told of a row meanwhile stands.
const SETTLE: &str = "\
    UPDATE processed_events AS ledger
       SET outcome = CASE WHEN ledger.outcome IN ('sending', 'unknown')
                     THEN settled.outcome ELSE ledger.outcome END,
           ses_message_id = coalesce(ledger.ses_message_id, settled.ses_message_id),
           lease_until = NULL
      FROM unnest($2, $3, $4) AS settled (event_id, outcome, ses_message_id)
     WHERE ledger.event_id = settled.event_id
       AND ledger.attempt = $1
    RETURNING ledger.event_id,
              ledger.ses_message_id IS NOT DISTINCT FROM settled.ses_message_id AS of_this_email";

const RELEASE: &str = "\
    DELETE FROM processed_events
     WHERE event_id = ANY ($2)
       AND attempt = $1
       AND outcome = 'sending'
    RETURNING event_id";

/// The worker lives and sends no more: from now on the send is in doubt, and not only when the lease ends.
const LEAVE_IN_DOUBT: &str = "\
    UPDATE processed_events
       SET lease_until = clock_timestamp()
     WHERE event_id = ANY ($2)
       AND attempt = $1
       AND outcome = 'sending'
    RETURNING event_id";

/// Rows of one attempt, and what they are to say. Writing it twice is as good as once.
#[derive(Debug)]
pub struct Settling<'a> {
    pub attempt: Attempt,
    pub settled: Vec<(&'a str, Settled<'a>)>,
    /// Keys of what was certainly not sent.
    pub released: Vec<&'a str>,
    /// Keys of what may have been sent.
    pub in_doubt: Vec<&'a str>,
}

/// What the ledger had to say to it.
#[derive(Debug, Default)]
pub struct Written {
    /// Keys whose row was another attempt's by then, or nobody's.
    pub not_ours: HashSet<String>,
    /// Keys whose row tells of another email.
    pub other_email: HashSet<String>,
}

impl<'a> Settling<'a> {
    /// Nothing yet.
    pub fn of(attempt: Attempt) -> Self {
        Self {
            attempt,
            settled: Vec::new(),
            released: Vec::new(),
            in_doubt: Vec::new(),
        }
    }

    pub fn release(attempt: Attempt, keys: impl Iterator<Item = &'a str>) -> Self {
        Self {
            released: keys.collect(),
            ..Self::of(attempt)
        }
    }

    /// One statement for each group of rows, each committed by itself.
    ///
    /// # Errors
    /// Some of it may not be written.
    pub async fn write(&self, connection: Connection) -> Result<Written, DatabaseError> {
        let client = connection.client();
        let attempt = self.attempt.number();
        let mut written = Written::default();
        if !self.settled.is_empty() {
            let (mut keys, mut outcomes, mut ids) = (Vec::new(), Vec::new(), Vec::new());
            for (key, settled) in &self.settled {
                let (outcome, ses_message_id) = settled.columns();
                keys.push(*key);
                outcomes.push(outcome);
                ids.push(ses_message_id);
            }
            let rows = client
                .query_typed(
                    SETTLE,
                    &[
                        (&attempt, Type::INT8),
                        (&keys, Type::TEXT_ARRAY),
                        (&outcomes, Type::TEXT_ARRAY),
                        (&ids, Type::TEXT_ARRAY),
                    ],
                )
                .await?;
            written.not_ours.extend(missing(&keys, &rows)?);
            for row in &rows {
                if !row.try_get::<_, bool>("of_this_email")? {
                    written.other_email.insert(row.try_get("event_id")?);
                }
            }
        }
        for (statement, keys) in [(RELEASE, &self.released), (LEAVE_IN_DOUBT, &self.in_doubt)] {
            if !keys.is_empty() {
                let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                    [(&attempt, Type::INT8), (keys, Type::TEXT_ARRAY)];
                let rows = client.query_typed(statement, &parameters).await?;
                written.not_ours.extend(missing(keys, &rows)?);
            }
        }
        connection.rest();
        Ok(written)
    }
}

fn missing(
    keys: &[&str],
    rows: &[tokio_postgres::Row],
) -> Result<Vec<String>, tokio_postgres::Error> {
    let changed = rows
        .iter()
        .map(|row| row.try_get::<_, &str>("event_id"))
        .collect::<Result<HashSet<_>, _>>()?;
    let missing = keys.iter().filter(|key| !changed.contains(**key));
    Ok(missing.map(|key| (*key).to_owned()).collect())
}
