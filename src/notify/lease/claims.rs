//! The claims of a round, and what is found for the events that were won.

use std::cell::Cell;
use std::time::Duration;

use crate::claim::{
    Attempt, Candidate, DoubtPolicy, Found, LeaseClaim, Settling, Standing, Terms, claim_all,
    look_up,
};
use crate::clock::Deadline;
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
            asked.set(true);
            let limits = budget::lease_limits(self.deadline);
            let terms = Terms {
                attempt,
                lease: limits.lease,
                doubt: DoubtPolicy::from(&self.notifier.claim),
                lock: limits.lock,
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
                    self.unclaim(attempt, candidates).await;
                }
                Err(Release::from(&error))
            }
        }
    }

    /// The claims may stand although their answer was lost. Nothing was sent; what can't be freed now is in doubt when
    /// the lease ends.
    async fn unclaim(&self, attempt: Attempt, candidates: &[Candidate<'_>]) {
        let keys = candidates
            .iter()
            .map(|candidate| candidate.event.key.as_str());
        let settling = Settling::release(attempt, keys);
        let by = budget::settled_by(self.deadline);
        let freed = async {
            settling
                .write(self.notifier.connections.get(by).await?)
                .await
        };
        let freed = tokio::time::timeout(by.left_at_most(UNCLAIM_TIMEOUT), freed);
        if !matches!(freed.await, Ok(Ok(_))) {
            tracing::warn!(
                events = candidates.len(),
                "the answer to a claim was lost, and it could not be taken back; if it stands, its events come back \
                 when it is over"
            );
        }
    }

    /// Looks up the recipients of all events that were won.
    pub(super) async fn look_up(&self, attempt: Attempt, items: &[&Item<'_>], turns: &mut [Turn]) {
        let mut ours: Vec<&mut Turn> = Vec::new();
        let mut won = Vec::new();
        for (item, turn) in items.iter().zip(turns) {
            if let (Turn::Ours(_), Some(candidate)) = (&turn, item.candidate()) {
                won.push(candidate);
                ours.push(turn);
            }
        }
        if won.is_empty() {
            return;
        }
        let found = match self.look_up_together(attempt, &won).await {
            Ok(found) => found.into_iter().map(Ok).collect(),
            // The query of one of them may be to blame, or they are slow: the others shall not suffer for it.
            Err(error) => {
                tracing::info!(
                    code = error.code(),
                    cause = error.cause(),
                    "looking up the recipients one by one"
                );
                self.look_up_one_by_one(attempt, &won).await
            }
        };
        for (turn, found) in ours.into_iter().zip(found) {
            *turn = match found {
                Ok(Found::Rows(rows)) => Turn::Ours(Ok(rows)),
                Ok(Found::InDoubt(wait)) => Turn::Ours(Err(Standing::InDoubt(wait).into())),
                Ok(Found::Lost(standing)) => Turn::Ended(standing.into()),
                Err(error) => Turn::Ours(Err(failed(error))),
            };
        }
    }

    async fn look_up_together(
        &self,
        attempt: Attempt,
        won: &[Candidate<'_>],
    ) -> Result<Vec<Found>, DatabaseError> {
        let deadline = Deadline::after(budget::look_up_limit(self.deadline));
        match self.look_up_some(attempt, won, deadline).await {
            // The connection may have died while the claim was made.
            Err(error) if error.is_of_the_connection() => {
                tracing::info!(
                    code = error.code(),
                    cause = error.cause(),
                    "looking up the recipients on another connection to Postgres"
                );
                self.look_up_some(attempt, won, deadline).await
            }
            found => found,
        }
    }

    async fn look_up_one_by_one(
        &self,
        attempt: Attempt,
        won: &[Candidate<'_>],
    ) -> Vec<Result<Found, DatabaseError>> {
        let mut found = Vec::with_capacity(won.len());
        for (place, candidate) in won.iter().enumerate() {
            let limit = budget::look_up_limit_of_one(self.deadline, won.len() - place);
            let deadline = Deadline::after(limit);
            let one = self.look_up_some(attempt, std::slice::from_ref(candidate), deadline);
            found.push(one.await.and_then(|found| {
                let mut found = found.into_iter();
                found.next().ok_or(DatabaseError::NoTransaction)
            }));
        }
        found
    }

    async fn look_up_some(
        &self,
        attempt: Attempt,
        won: &[Candidate<'_>],
        deadline: Deadline,
    ) -> Result<Vec<Found>, DatabaseError> {
        let found = async {
            let connection = self.notifier.connections.get(deadline).await?;
            look_up(connection, attempt, won, deadline.left()).await
        };
        let found = timed(
            Time::Database,
            tokio::time::timeout_at(deadline.instant(), found),
        );
        found.await.unwrap_or(Err(DatabaseError::NoAnswerInTime))
    }
}

/// The claim could write a moment ago, and the look-up may not.
fn failed(error: DatabaseError) -> Outcome {
    if error.code() == "25006" {
        let problem = "recipient.sql writes, which it must not".to_owned();
        return Outcome::Released(Release::Folder(problem));
    }
    error.into()
}
