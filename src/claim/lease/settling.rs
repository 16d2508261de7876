//! What becomes of the rows that an attempt has claimed. Each statement is of this attempt's rows alone: where another
//! one has a row by now, nothing is changed.

use crate::claim::Settled;
use crate::database::{Connection, DatabaseError};

use super::Attempt;
use super::group::{Group, UNLOCKED, Written};

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
            Group::settled(SETTLE, &self.settled),
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
