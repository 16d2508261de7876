//! The walk of one record: received, claimed, composed, sent, settled.

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::claim::{Claim, Claimed, Row, Settled, Standing, claim};
use crate::compose::{Destination, Recipient, compose, destination};
use crate::database::{DatabaseError, DatabaseVerdict};
use crate::receive::Event;
use crate::send::SendVerdict;
use crate::settle::{Settlement, settle_sent};

use super::lanes::Item;
use super::outcome::{Outcome, Refusal, Release};
use super::{Invocation, budget};

/// Connections that a claim is tried on; the first may have died in the pool, and the second with its node.
const MOST_CONNECTIONS: u32 = 3;

/// A record on its way, with what its log line will tell.
pub(super) struct Walk<'a> {
    invocation: &'a Invocation<'a>,
    started: Instant,
    line: Line,
}

/// What is known of the record so far; nothing in it is personal.
#[derive(Default)]
struct Line {
    message_id: Option<String>,
    event_id: Option<String>,
    event_type: Option<String>,
    receive_count: u32,
    redirected: bool,
    detail: Map<String, Value>,
}

impl<'a> Walk<'a> {
    pub fn new(invocation: &'a Invocation<'a>, item: &Item<'_>) -> Self {
        let event = item.event.as_ref().ok();
        Self {
            invocation,
            started: Instant::now(),
            line: Line {
                message_id: item.record.message_id.as_ref().map(ToString::to_string),
                event_id: event.map(|event| event.key.to_string()),
                event_type: event.map(|event| event.event_type().to_owned()),
                receive_count: item.record.receive_count,
                redirected: false,
                detail: event
                    .map(|event| event.folder.safe_event_fields(&event.fields))
                    .unwrap_or_default(),
            },
        }
    }

    /// Calls `on_accepted` at the moment from which nothing may fail the record.
    pub async fn run(&mut self, item: &Item<'_>, on_accepted: impl FnOnce()) -> Outcome {
        let event = match &item.event {
            Ok(event) => event,
            Err(malformed) => return Outcome::Refused(Refusal::Malformed(malformed.clone())),
        };
        match self.walk(event, on_accepted).await {
            Ok(outcome) | Err(outcome) => outcome,
        }
    }

    /// `Err` is an early end.
    async fn walk(
        &mut self,
        event: &Event<'_>,
        on_accepted: impl FnOnce(),
    ) -> Result<Outcome, Outcome> {
        let deadline = self.invocation.deadline;
        if deadline.left() < budget::START {
            return Err(Outcome::Released(Release::NoTime));
        }
        let notifier = self.invocation.notifier;
        if notifier
            .pace
            .turn(deadline.keeping(budget::START))
            .await
            .is_err()
        {
            return Err(Outcome::Released(Release::NoTime));
        }
        let (claimed, rows) = self.claim(event).await?;
        let Some(row) = self.only_row(event, &rows) else {
            return self.without_one_row(*claimed, rows.len()).await;
        };
        let recipient = match Recipient::of_row(row) {
            Ok(recipient) => recipient,
            Err(problem) => {
                claimed.release().await;
                return Err(Outcome::Refused(Refusal::Recipient(problem.to_string())));
            }
        };
        let to = match destination(recipient, &notifier.recipients) {
            Destination::Recipient(mailbox) => mailbox,
            Destination::Redirected(mailbox) => {
                self.line.redirected = true;
                mailbox
            }
            Destination::Withheld => {
                return self
                    .settle_unsent(*claimed, Settled::Withheld, Outcome::Withheld)
                    .await;
            }
        };
        let email = match compose(&notifier.catalogue, &notifier.mail, event, row, to) {
            Ok(email) => email,
            Err(error) => {
                claimed.release().await;
                return Err(Outcome::Released(Release::Folder(error.to_string())));
            }
        };
        let Some(timeout) = budget::send_timeout(deadline) else {
            claimed.release().await;
            return Err(Outcome::Released(Release::NoTime));
        };
        let unsent = match self.invocation.sender.send(&email, timeout).await {
            SendVerdict::Accepted(id) => {
                on_accepted();
                self.settle(*claimed, &id).await;
                return Ok(Outcome::Sent(id));
            }
            SendVerdict::NotSent(cause) => Outcome::Released(Release::Ses(cause)),
            SendVerdict::NotSentOurs(cause) => Outcome::Released(Release::SesSetup(cause)),
            SendVerdict::Refused(cause) => Outcome::Refused(Refusal::Message(cause)),
            SendVerdict::Unknown(cause) => Outcome::Unknown(cause),
        };
        claimed.release().await;
        Err(unsent)
    }

    /// Nothing was sent yet, so a failed connection is simply replaced by another.
    async fn claim(&self, event: &Event<'_>) -> Result<(Box<Claimed>, Vec<Row>), Outcome> {
        let deadline = self.invocation.deadline;
        let connections = &self.invocation.notifier.connections;
        let mut tries = 0;
        loop {
            tries += 1;
            let limits = budget::claim_limits(deadline);
            let claimed = async {
                let connection = connections.get(budget::sent_by(deadline)).await?;
                claim(connection, event, limits).await
            };
            let error = match claimed.await {
                Ok(Claim::Won(claimed, rows)) => return Ok((claimed, rows)),
                Ok(Claim::Lost(standing)) => return Err(of_standing(standing)),
                Err(error) => error,
            };
            let again = error.verdict() == DatabaseVerdict::TryAnotherConnection
                && tries < MOST_CONNECTIONS
                && deadline.left() >= budget::START;
            if !again {
                return Err(of_database_error(&error));
            }
            tracing::info!(
                event_id = %event.key,
                code = error.code(),
                cause = error.cause(),
                "claiming on another connection"
            );
        }
    }

    fn only_row<'r>(&mut self, event: &Event<'_>, rows: &'r [Row]) -> Option<&'r Row> {
        match rows {
            [row] => {
                let columns = event.folder.safe_columns(row);
                self.line.detail.extend(columns);
                Some(row)
            }
            _ => None,
        }
    }

    async fn without_one_row(&self, claimed: Claimed, rows: usize) -> Result<Outcome, Outcome> {
        if rows == 0 {
            return self
                .settle_unsent(claimed, Settled::Skipped, Outcome::Skipped)
                .await;
        }
        claimed.release().await;
        Err(Outcome::Released(Release::Folder(
            "recipient.sql returned more than one row".to_owned(),
        )))
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
            Ok(Err(error)) => Err(of_database_error(&error)),
            Err(_) => Err(of_database_error(&DatabaseError::NoAnswerInTime)),
        }
    }

    async fn settle(&self, claimed: Claimed, id: &crate::send::SesMessageId) {
        let event_id = self.line.event_id.as_deref();
        let deadline = budget::settled_by(self.invocation.deadline);
        let connections = &self.invocation.notifier.connections;
        match settle_sent(claimed, id, connections, deadline).await {
            Settlement::Settled => {}
            Settlement::Restored => tracing::info!(
                event_id,
                ses_message_id = %id,
                "the claim of the sent email was written on another connection"
            ),
            Settlement::AnotherEmail => tracing::error!(
                event_id,
                ses_message_id = %id,
                "a second email left: while the commit of this one failed, another worker sent one"
            ),
            Settlement::NotWritten(error) => tracing::error!(
                event_id,
                ses_message_id = %id,
                code = error.code(),
                cause = error.cause(),
                "the email was sent, but its claim could not be written before the deadline; \
                 the message is acknowledged, and only another delivery of the same event could send it again"
            ),
        }
    }

    /// The record's one line.
    pub fn log(&self, outcome: &Outcome) {
        let Line {
            message_id,
            event_id,
            event_type,
            receive_count,
            redirected,
            detail,
        } = &self.line;
        let detail = Value::Object(detail.clone()).to_string();
        let (reason, code, cause, ses_message_id) = match outcome {
            Outcome::Sent(id) => (None, None, None, Some(id.as_str())),
            Outcome::Refused(refusal @ Refusal::Message(cause)) => (
                Some(refusal.reason()),
                Some(cause.code.as_str()),
                Some(refusal.to_string()),
                None,
            ),
            Outcome::Refused(refusal) => (
                Some(refusal.reason()),
                None,
                Some(refusal.to_string()),
                None,
            ),
            Outcome::Released(release) => (
                Some(release.reason()),
                release.code(),
                Some(release.to_string()),
                None,
            ),
            Outcome::Unknown(cause) => (
                None,
                Some(cause.code.as_str()),
                Some(cause.detail.clone()),
                None,
            ),
            _ => (None, None, None, None),
        };
        macro_rules! line {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    outcome = outcome.name(),
                    event_id,
                    event_type,
                    message_id,
                    ses_message_id,
                    reason,
                    code,
                    cause,
                    receive_count,
                    redirected = redirected.then_some(true),
                    elapsed_ms = self.started.elapsed().as_millis() as u64,
                    request_id = self.invocation.request_id,
                    detail,
                    $message
                )
            };
        }
        match outcome {
            Outcome::Sent(_) => line!(info, "email sent"),
            Outcome::Duplicate => line!(info, "duplicate: the event was handled before"),
            Outcome::Skipped => line!(warn, "skipped: there is nobody to write to any more"),
            Outcome::Withheld => {
                line!(
                    warn,
                    "withheld: the recipient is not on RECIPIENT_ALLOW_LIST"
                )
            }
            Outcome::Refused(_) => line!(error, "refused: the event can never be sent"),
            Outcome::Released(release) if release.passes() => {
                line!(warn, "released: the event comes back")
            }
            Outcome::Released(_) => line!(error, "released: the event comes back, and needs you"),
            Outcome::Unknown(_) => {
                line!(
                    warn,
                    "outcome unknown: SES may have sent it; the event comes back"
                )
            }
        }
    }
}

fn of_standing(standing: Standing) -> Outcome {
    match standing {
        Standing::Settled => Outcome::Duplicate,
        Standing::InProgress => Outcome::Released(Release::InProgress),
        Standing::OtherPayload => Outcome::Refused(Refusal::KeyReused),
    }
}

fn of_database_error(error: &DatabaseError) -> Outcome {
    let code = error.code().to_owned();
    let cause = error.cause();
    match error.verdict() {
        DatabaseVerdict::Never => Outcome::Refused(Refusal::Data),
        DatabaseVerdict::Ours => Outcome::Released(Release::DatabaseSetup { code, cause }),
        DatabaseVerdict::Later | DatabaseVerdict::TryAnotherConnection => {
            Outcome::Released(Release::Database { code, cause })
        }
    }
}
