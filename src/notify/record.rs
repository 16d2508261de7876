//! The walk of one event: claimed, composed, sent, settled.

use crate::claim::{Claim, Claimed, Doubt, Row, Settled, claim};
use crate::compose::{Destination, Recipient, compose, destination};
use crate::database::DatabaseError;
use crate::queue::MessageId;
use crate::receive::Event;
use crate::send::{Cause, SendVerdict, SesMessageId};
use crate::settle::{Settlement, settle_in_doubt, settle_sent};

use super::line::Line;
use super::outcome::{Outcome, Refusal, Release};
use super::{Invocation, budget};

pub(super) struct Walk<'a> {
    pub invocation: &'a Invocation<'a>,
    pub event: &'a Event<'a>,
    pub message_id: Option<&'a MessageId>,
}

impl Walk<'_> {
    /// Calls `on_accepted` at the moment from which nothing may fail the record.
    pub async fn run(&self, line: &mut Line, on_accepted: impl FnOnce()) -> Outcome {
        match self.walk(line, on_accepted).await {
            Ok(outcome) | Err(outcome) => outcome,
        }
    }

    /// `Err` is an early end.
    async fn walk(&self, line: &mut Line, on_accepted: impl FnOnce()) -> Result<Outcome, Outcome> {
        let notifier = self.invocation.notifier;
        let deadline = self.invocation.deadline;
        let no_time = || Outcome::Released(Release::NoTime);
        let start_by = budget::started_by(deadline);
        if start_by.left().is_zero() || notifier.pace.turn(start_by).await.is_err() {
            return Err(no_time());
        }

        let (claimed, rows) = self.claim().await?;
        let row = match rows.as_slice() {
            [row] => row,
            [] => {
                return self
                    .settle_unsent(*claimed, Settled::Skipped, Outcome::Skipped)
                    .await;
            }
            _ => {
                let problem = "recipient.sql returned more than one row".to_owned();
                return self
                    .release(*claimed, Outcome::Released(Release::Folder(problem)))
                    .await;
            }
        };
        line.tell(self.event.folder.safe_columns(row));

        let recipient = match Recipient::of_row(row) {
            Ok(recipient) => recipient,
            Err(problem) => {
                let refusal = Refusal::Recipient(problem.to_string());
                return self.release(*claimed, Outcome::Refused(refusal)).await;
            }
        };
        let to = match destination(recipient, &notifier.recipients) {
            Destination::Recipient(mailbox) => mailbox,
            Destination::Redirected(mailbox) => {
                line.redirected();
                mailbox
            }
            Destination::Withheld => {
                return self
                    .settle_unsent(*claimed, Settled::Withheld, Outcome::Withheld)
                    .await;
            }
        };
        let email = match compose(&notifier.catalogue, &notifier.mail, self.event, row, to) {
            Ok(email) => email,
            Err(error) => {
                let release = Release::Folder(error.to_string());
                return self.release(*claimed, Outcome::Released(release)).await;
            }
        };

        let Some(timeout) = budget::send_timeout(deadline) else {
            return self.release(*claimed, no_time()).await;
        };
        let sent = self
            .invocation
            .sender
            .send(&email, timeout, || claimed.holds());
        match sent.await {
            SendVerdict::Accepted(id) => {
                on_accepted();
                line.accepted(&id);
                self.settle(*claimed, &id).await;
                Ok(Outcome::Sent(id))
            }
            SendVerdict::ClaimLost => {
                let cause = Cause::new(
                    "claim_lost",
                    "the connection that held the claim was lost before the email was sent",
                );
                self.release(*claimed, Outcome::Released(Release::Database(cause)))
                    .await
            }
            SendVerdict::NotSent(cause) => {
                self.release(*claimed, Outcome::Released(Release::Ses(cause)))
                    .await
            }
            SendVerdict::NotSentOurs(cause) => {
                self.release(*claimed, Outcome::Released(Release::SesSetup(cause)))
                    .await
            }
            SendVerdict::Refused(cause) => {
                self.release(*claimed, Outcome::Refused(Refusal::Message(cause)))
                    .await
            }
            SendVerdict::Unknown(cause) => self.leave_in_doubt(*claimed, cause).await,
        }
    }

    async fn claim(&self) -> Result<(Box<Claimed>, Vec<Row>), Outcome> {
        let deadline = self.invocation.deadline;
        let claimed = self.invocation.notifier.connections.with(
            budget::claimed_by(deadline),
            async |connection| {
                let limits = budget::claim_limits(deadline);
                claim(connection, self.event, self.message_id, limits).await
            },
        );
        match claimed.await? {
            Claim::Won(claimed, rows) => Ok((claimed, rows)),
            Claim::Lost(standing) => Err(standing.into()),
        }
    }

    async fn release<T>(&self, claimed: Claimed, outcome: Outcome) -> Result<T, Outcome> {
        claimed.release().await;
        Err(outcome)
    }

    async fn leave_in_doubt<T>(&self, claimed: Claimed, cause: Cause) -> Result<T, Outcome> {
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

    async fn settle(&self, claimed: Claimed, id: &SesMessageId) {
        let connections = &self.invocation.notifier.connections;
        let deadline = budget::settled_by(self.invocation.deadline);
        match settle_sent(claimed, id, connections, deadline).await {
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
