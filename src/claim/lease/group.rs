//! Rows that become the same, in one statement.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use crate::claim::Settled;
use crate::database::{DatabaseError, DatabaseVerdict};

use super::Attempt;

/// Whoever has one of the rows locked doesn't hold up the others.
pub(super) const UNLOCKED: &str = "\
       AND ledger.event_id IN (SELECT event_id
                                 FROM processed_events
                                WHERE event_id = ANY ($2)
                                  AND attempt = $1
                                  FOR UPDATE SKIP LOCKED)";

/// Of the rows that weren't written: somebody has them locked, or had until now. `$3`: whatever SES has told of them.
const STILL_OURS: &str = "\
    SELECT
      FROM processed_events
     WHERE event_id = ANY ($2)
       AND attempt = $1
       AND (outcome = 'sending' OR $3)";

const RETURNING_KEYS: &str = "RETURNING ledger.event_id";
const RETURNING_EMAILS: &str = "\
    RETURNING ledger.event_id,
              ledger.ses_message_id IS NOT DISTINCT FROM settled.ses_message_id AS of_this_email";

/// What the ledger had to say to it.
#[derive(Debug, Default)]
pub struct Written {
    /// Keys whose row somebody else has locked.
    pub passed_over: HashSet<String>,
    /// Keys whose row was another attempt's by then, or nobody's.
    pub not_ours: HashSet<String>,
    /// Keys whose row tells of another email.
    pub other_email: HashSet<String>,
    /// Keys whose row Postgres didn't take.
    pub failed: HashMap<String, DatabaseError>,
}

/// Rows that become the same.
pub(super) struct Group<'a> {
    statement: &'static str,
    returning: &'static str,
    keys: Vec<&'a str>,
    /// `outcome` and `ses_message_id`, where the statement sets them.
    columns: Option<Vec<(&'static str, Option<&'a str>)>>,
}

impl<'a> Group<'a> {
    pub fn of_keys(statement: &'static str, keys: &[&'a str]) -> Self {
        Self {
            statement,
            returning: RETURNING_KEYS,
            keys: keys.to_vec(),
            columns: None,
        }
    }

    pub fn settled(statement: &'static str, settled: &[(&'a str, Settled<'a>)]) -> Self {
        Self {
            statement,
            returning: RETURNING_EMAILS,
            keys: settled.iter().map(|(key, _)| *key).collect(),
            columns: Some(
                settled
                    .iter()
                    .map(|(_, settled)| settled.columns())
                    .collect(),
            ),
        }
    }

    fn alone(&self, place: usize) -> Self {
        Self {
            statement: self.statement,
            returning: self.returning,
            keys: vec![self.keys[place]],
            columns: self.columns.as_ref().map(|columns| vec![columns[place]]),
        }
    }

    pub fn owned_keys(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(ToString::to_string)
    }

    /// Gives back the rows that weren't written, each by itself.
    pub async fn write(
        &self,
        client: &Client,
        attempt: Attempt,
        condition: &str,
        written: &mut Written,
    ) -> Result<Vec<Self>, DatabaseError> {
        if self.keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut changed = HashSet::new();
        match self.run(client, attempt, condition).await {
            Ok(rows) => {
                for row in &rows {
                    let key: String = row.try_get("event_id")?;
                    if self.columns.is_some() && !row.try_get::<_, bool>("of_this_email")? {
                        written.other_email.insert(key.clone());
                    }
                    changed.insert(key);
                }
            }
            Err(error) if error.verdict() == DatabaseVerdict::TryAnotherConnection => {
                return Err(error);
            }
            Err(error) if self.keys.len() == 1 => {
                written.failed.insert(self.keys[0].to_owned(), error);
                return Ok(Vec::new());
            }
            Err(_) => {}
        }
        let places = self.keys.iter().enumerate();
        let left = places.filter(|(_, key)| !changed.contains(**key));
        Ok(left.map(|(place, _)| self.alone(place)).collect())
    }

    /// Whether the rows that weren't written are still to be. Another attempt, or SES's word, doesn't become undone; a
    /// lock does.
    pub async fn still_ours(
        &self,
        client: &Client,
        attempt: Attempt,
    ) -> Result<bool, DatabaseError> {
        let attempt = attempt.number();
        let in_any_state = self.columns.is_some();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
            (&attempt, Type::INT8),
            (&self.keys, Type::TEXT_ARRAY),
            (&in_any_state, Type::BOOL),
        ];
        let ours = client.query_typed(STILL_OURS, &parameters).await?;
        Ok(!ours.is_empty())
    }

    async fn run(
        &self,
        client: &Client,
        attempt: Attempt,
        condition: &str,
    ) -> Result<Vec<tokio_postgres::Row>, DatabaseError> {
        let statement = format!("{} {condition} {}", self.statement, self.returning);
        let attempt = attempt.number();
        let (outcomes, ids): (Vec<_>, Vec<_>) = self.columns.iter().flatten().copied().unzip();
        let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            vec![(&attempt, Type::INT8), (&self.keys, Type::TEXT_ARRAY)];
        if self.columns.is_some() {
            parameters.push((&outcomes, Type::TEXT_ARRAY));
            parameters.push((&ids, Type::TEXT_ARRAY));
        }
        Ok(client.query_typed(&statement, &parameters).await?)
    }
}
