//! The claims of a round, made together.

use std::cell::Cell;
use std::time::Duration;

use crate::claim::{
    Attempt, Candidate, DoubtPolicy, LeaseClaim, Locked, Settling, Terms, Written, claim_all,
};
use crate::database::DatabaseError;
use crate::metrics::{Count, Time, count, timed};
use crate::notify::item::Item;
use crate::notify::outcome::{Outcome, Release};
use crate::notify::{Invocation, budget};

use super::round::Turn;

/// Taking back takes milliseconds, where Postgres is there at all.
const UNCLAIM_TIMEOUT: Duration = Duration::from_secs(2);

impl Invocation<'_> {
    /// The turns of the records, in their order.
    pub(super) async fn claim(&self, attempt: Attempt, items: &[&Item<'_>]) -> Vec<Turn> {
        let candidates: Vec<_> = items.iter().filter_map(|item| item.candidate()).collect();
        let mut claims = match self.claim_candidates(attempt, &candidates).await {
            Ok(claims) => claims
                .into_iter()
                .map(|claim| match claim {
                    Ok(LeaseClaim::Won) => {
                        count(Count::Claimed);
                        Turn::Ours(Ok(Vec::new()))
                    }
                    Ok(LeaseClaim::Lost(standing)) => Turn::Ended(standing.into()),
                    Err(error) => Turn::Ended(error.into()),
                })
                .collect::<Vec<_>>(),
            Err(release) => candidates
                .iter()
                .map(|_| Turn::Ended(Outcome::Released(release.clone())))
                .collect(),
        }
        .into_iter();
        let turn = |item: &&Item<'_>| match &item.event {
            Err(unread) => Turn::Ended(unread.into()),
            Ok(_) => claims.next().expect("there is one for each candidate"),
        };
        items.iter().map(turn).collect()
    }

    async fn claim_candidates(
        &self,
        attempt: Attempt,
        candidates: &[Candidate<'_>],
    ) -> Result<Vec<Result<LeaseClaim, DatabaseError>>, Release> {
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        if budget::started_by(self.deadline).left().is_zero() {
            return Err(Release::NoTime);
        }
        let by = budget::claimed_by(self.deadline);
        let asked = Cell::new(false);
        let claims = self.notifier.connections.with(by, async |connection| {
            let again = asked.replace(true);
            let limits = budget::lease_limits(self.deadline);
            let terms = Terms {
                attempt,
                lease: limits.lease,
                doubt: DoubtPolicy::from(&self.notifier.claim),
                // The neighbour may be the statement of the try before, which Postgres is still at work on: left
                // alone, what it claims would be nobody's.
                lock: if again { limits.answer } else { limits.lock },
                lock_alone: limits.lock_alone,
                answer: limits.answer,
            };
            let claimed = claim_all(connection, candidates, terms);
            timed(Time::Database, tokio::time::timeout(limits.answer, claimed))
                .await
                .unwrap_or(Err(DatabaseError::NoAnswerInTime))
        });
        match claims.await {
            Ok(claims) => Ok(claims),
            Err(error) => {
                if asked.get() {
                    self.unclaim(attempt, candidates, &error).await;
                }
                Err(Release::from(&error))
            }
        }
    }

    /// The claims may stand although their answer was lost. Nothing was sent; what can't be freed now is in doubt when
    /// the lease ends.
    async fn unclaim(&self, attempt: Attempt, candidates: &[Candidate<'_>], error: &DatabaseError) {
        let keys = candidates
            .iter()
            .map(|candidate| candidate.event.key.as_str());
        let settling = Settling::release(attempt, keys);
        let by = budget::settled_by(self.deadline);
        let freed = async {
            let connection = self.notifier.connections.get(by).await?;
            settling.write(connection, Locked::WaitedFor).await
        };
        let freed = tokio::time::timeout(by.left_at_most(UNCLAIM_TIMEOUT), freed);
        // Where Postgres is still at work on the claim, there is nothing to be found yet.
        let is_free = |written: &Written| {
            written.not_ours.is_empty() || !matches!(error, DatabaseError::NoAnswerInTime)
        };
        if !matches!(freed.await, Ok(Ok(written)) if is_free(&written)) {
            tracing::warn!(
                events = candidates.len(),
                "the answer to a claim was lost, and it could not be taken back; if it stands, its events come back \
                 when it is over"
            );
        }
    }
}
