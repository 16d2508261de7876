//! `CLAIM_MODE=transaction`: each event by itself, claimed, sent and settled inside one transaction.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use crate::claim::{Claim, Claimed, Doubt, DoubtPolicy, Row, Settled, claim};
use crate::database::DatabaseError;
use crate::metrics::{Count, Time, count, timed};
use crate::queue::{Answer, MessageId};
use crate::receive::Event;
use crate::send::{Cause, SesMessageId};
use crate::settle::{Settlement, settle_in_doubt, settle_sent};

use super::dispatch::Dispatched;
use super::item::Item;
use super::lanes::Lane;
use super::line::Line;
use super::outcome::{Outcome, Release};
use super::{Invocation, budget};

impl Invocation<'_> {
    /// The order of this mode, for all records of a batch, as many at once as there may be connections.
    pub(super) async fn in_transactions(&self, lanes: Vec<Lane<'_>>, answer: &Answer) {
        self.each(lanes, |lane| self.walk_lane(lane, answer)).await;
    }

    /// One after another; once a record stays on the queue, the rest of the lane does too.
    async fn walk_lane(&self, lane: Lane<'_>, answer: &Answer) {
        let mut stuck = false;
        for mut item in lane {
            item.line.begin();
            let outcome = if stuck {
                Outcome::Released(Release::BehindAFailure)
            } else {
                self.outcome(&mut item, answer).await
            };
            let by = budget::settled_by(self.deadline);
            let outcome = self.give_up(&item, outcome, by).await;
            stuck |= item.holds_up(&outcome);
            self.finish(item, &outcome, answer);
        }
    }

    async fn outcome(&self, item: &mut Item<'_>, answer: &Answer) -> Outcome {
        let event = match &item.event {
            Ok(event) => event,
            Err(unread) => return unread.into(),
        };
        let walk = Walk {
            invocation: self,
            event,
            message_id: item.record.message_id.as_ref(),
        };
        // From SES's acceptance on nothing may fail the record.
        let on_accepted = || answer.done(item.index);
        let walked = AssertUnwindSafe(walk.run(&mut item.line, on_accepted)).catch_unwind();
        match walked.await {
            Ok(Ok(outcome) | Err(outcome)) => outcome,
            Err(_) => item.line.cut_short(Release::Panicked),
        }
    }
}

/// One event on its way.
struct Walk<'a> {
    invocation: &'a Invocation<'a>,
    event: &'a Event<'a>,
    message_id: Option<&'a MessageId>,
}

impl Walk<'_> {
    /// `Err` is an early end.
    async fn run(&self, line: &mut Line, on_accepted: impl FnOnce()) -> Result<Outcome, Outcome> {
        self.wait_for_a_turn().await?;
        let (claimed, rows) = self.claim().await?;
        let claim_holds = || claimed.holds();
        let dispatched = self
            .invocation
            .dispatch(self.event, &rows, line, claim_holds, on_accepted)
            .await;
        self.settle(*claimed, dispatched).await
    }

    /// Before the claim: a transaction is not held open for it.
    async fn wait_for_a_turn(&self) -> Result<(), Outcome> {
        let start_by = budget::started_by(self.invocation.deadline);
        let pace = &self.invocation.notifier.pace;
        if start_by.left().is_zero() || pace.turn(start_by).await.is_err() {
            return Err(Outcome::Released(Release::NoTime));
        }
        Ok(())
    }

    async fn claim(&self) -> Result<(Box<Claimed>, Vec<Row>), Outcome> {
        let deadline = self.invocation.deadline;
        let notifier = self.invocation.notifier;
        let claimed = notifier
            .connections
            .with(budget::claimed_by(deadline), async |connection| {
                let limits = budget::claim_limits(deadline);
                let doubt = DoubtPolicy::from(&notifier.claim);
                claim(connection, self.event, self.message_id, limits, doubt).await
            });
        match claimed.await? {
            Claim::Won(claimed, rows) => {
                count(Count::Claimed);
                Ok((claimed, rows))
            }
            Claim::Lost(standing) => Err(standing.into()),
        }
    }

    async fn settle(&self, claimed: Claimed, dispatched: Dispatched) -> Result<Outcome, Outcome> {
        match dispatched {
            Dispatched::Sent(id) => {
                self.settle_sent(claimed, &id).await;
                Ok(Outcome::Sent(id))
            }
            Dispatched::Skipped => {
                self.settle_unsent(claimed, Settled::Skipped, Outcome::Skipped)
                    .await
            }
            Dispatched::Withheld => {
                self.settle_unsent(claimed, Settled::Withheld, Outcome::Withheld)
                    .await
            }
            Dispatched::NotSent(outcome) => {
                claimed.release().await;
                Err(outcome)
            }
            Dispatched::Unknown(cause) => self.leave_in_doubt(claimed, cause).await,
        }
    }

    async fn leave_in_doubt(&self, claimed: Claimed, cause: Cause) -> Result<Outcome, Outcome> {
        let doubt = Doubt {
            message_id: self.message_id,
            wait: self.invocation.notifier.claim.in_doubt_wait,
        };
        let connections = &self.invocation.notifier.connections;
        let deadline = budget::settled_by(self.invocation.deadline);
        if let Err(error) = settle_in_doubt(claimed, doubt, connections, deadline).await {
            tracing::warn!(
                event_id = %self.event.key,
                code = error.code(),
                cause = error.cause(),
                "a send of unknown outcome could not be marked; another message of the same event would not wait"
            );
        }
        Err(Outcome::Unknown(cause))
    }

    /// Whether such a commit succeeded doesn't matter to anybody's mailbox: if in doubt, the record comes back
    /// and finds its claim or makes it again.
    async fn settle_unsent(
        &self,
        claimed: Claimed,
        settled: Settled<'_>,
        outcome: Outcome,
    ) -> Result<Outcome, Outcome> {
        let deadline = budget::settled_by(self.invocation.deadline);
        match tokio::time::timeout_at(deadline.instant(), claimed.commit(settled)).await {
            Ok(Ok(())) => Ok(outcome),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(DatabaseError::NoAnswerInTime.into()),
        }
    }

    async fn settle_sent(&self, claimed: Claimed, id: &SesMessageId) {
        let connections = &self.invocation.notifier.connections;
        let deadline = budget::settled_by(self.invocation.deadline);
        let settled = settle_sent(claimed, id, connections, deadline);
        match timed(Time::Database, settled).await {
            Settlement::Settled => {}
            Settlement::Restored => tracing::info!(
                event_id = %self.event.key,
                ses_message_id = %id,
                "the claim of the sent email was written on another connection"
            ),
            // `feedback` tells of it as an error, and counts it.
            Settlement::AnotherEmail => tracing::warn!(
                event_id = %self.event.key,
                ses_message_id = %id,
                "the ledger tells of another email: while the commit of this one failed, another worker sent one"
            ),
            Settlement::NotWritten(error) => tracing::error!(
                event_id = %self.event.key,
                ses_message_id = %id,
                code = error.code(),
                cause = error.cause(),
                "the email was sent, but its claim could not be written before the deadline; the message is \
                 acknowledged, and only another message of the same event could send it again"
            ),
        }
    }
}
