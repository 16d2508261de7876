//! What becomes of the rows that an attempt has claimed. Each statement is of this attempt's rows alone: where another
//! one has a row by now, nothing is changed.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use crate::claim::Settled;
use crate::database::{Connection, DatabaseError, DatabaseVerdict};

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
       AND ledger.attempt = $1";

const RELEASE: &str = "\
    DELETE FROM processed_events AS ledger
     WHERE ledger.event_id = ANY ($2)
       AND ledger.attempt = $1
       AND ledger.outcome = 'sending'";

/// The worker lives and sends no more: from now on the send is in doubt, and not only when the lease ends.
const LEAVE_IN_DOUBT: &str = "\
    UPDATE processed_events AS ledger
       SET lease_until = clock_timestamp()
     WHERE ledger.event_id = ANY ($2)
       AND ledger.attempt = $1
       AND ledger.outcome = 'sending'";

/// Whoever has one of the rows locked doesn't hold up the others.
const UNLOCKED: &str = "\
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

/// What becomes of a row that somebody else has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// It isn't written.
    PassedOver,
    /// It is written when it is free, even if nobody waits for that any more.
    WaitedFor,
}

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

    /// One statement for each group of rows, each committed by itself; then one for each row that is left, because it is
    /// locked, not ours, or Postgres didn't take all of its group. What was certainly not sent comes first: it would
    /// otherwise be in doubt.
    ///
    /// # Errors
    /// The connection failed, and some of it may not be written.
    pub async fn write(
        &self,
        connection: Connection,
        locked: Locked,
    ) -> Result<Written, DatabaseError> {
        let groups = [
            Group::of_keys(RELEASE, &self.released),
            Group::of_keys(LEAVE_IN_DOUBT, &self.in_doubt),
            Group::settled(&self.settled),
        ];
        let mut written = Written::default();
        let mut left = Vec::new();
        let client = connection.client();
        for group in &groups {
            let rest = group.write(client, self.attempt, UNLOCKED, &mut written);
            left.extend(rest.await?);
        }
        for one in &left {
            let mut rest = one
                .write(client, self.attempt, UNLOCKED, &mut written)
                .await?;
            let is_locked = !rest.is_empty() && one.still_ours(client, self.attempt).await?;
            if is_locked && locked == Locked::PassedOver {
                written.passed_over.extend(one.owned_keys());
                continue;
            }
            if is_locked {
                rest = one.write(client, self.attempt, "", &mut written).await?;
            }
            let not_ours = rest.iter().flat_map(Group::owned_keys);
            written.not_ours.extend(not_ours);
        }
        connection.rest();
        Ok(written)
    }
}

/// Rows that become the same.
struct Group<'a> {
    statement: &'static str,
    returning: &'static str,
    keys: Vec<&'a str>,
    /// `outcome` and `ses_message_id`, where the statement sets them.
    columns: Option<Vec<(&'static str, Option<&'a str>)>>,
}

impl<'a> Group<'a> {
    fn of_keys(statement: &'static str, keys: &[&'a str]) -> Self {
        Self {
            statement,
            returning: RETURNING_KEYS,
            keys: keys.to_vec(),
            columns: None,
        }
    }

    fn settled(settled: &[(&'a str, Settled<'a>)]) -> Self {
        Self {
            statement: SETTLE,
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

    fn owned_keys(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(ToString::to_string)
    }

    /// Gives back the rows that weren't written, each by itself.
    async fn write(
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
    async fn still_ours(&self, client: &Client, attempt: Attempt) -> Result<bool, DatabaseError> {
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
