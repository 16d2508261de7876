//! What is found for the events that were won, looked up together; one by one where that fails.

use crate::claim::{Attempt, Candidate, Found, Standing, look_up};
use crate::clock::Deadline;
use crate::database::DatabaseError;
use crate::metrics::{Time, timed};
use crate::notify::item::Item;
use crate::notify::outcome::{Outcome, Release};
use crate::notify::{Invocation, budget};

use super::round::Turn;

impl Invocation<'_> {
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
