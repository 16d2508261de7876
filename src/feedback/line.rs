//! The one line that each notification leaves in the log, and what is counted of it.

use serde_json::Value;

use crate::metrics::{Count, count};
use crate::queue::Record;

use super::kind::Kind;
use super::notification::Notification;
use super::outcome::Outcome;
use super::record::Recorded;

/// Dropped before its end, when the batch is cut off, it says so.
pub(super) struct Line<'a> {
    record: &'a Record,
    request_id: &'a str,
    notification: Option<Notification>,
    ended: bool,
}

impl<'a> Line<'a> {
    pub fn new(record: &'a Record, request_id: &'a str) -> Self {
        Self {
            record,
            request_id,
            notification: None,
            ended: false,
        }
    }

    /// What the message turned out to be.
    pub fn tell(&mut self, notification: Notification) -> &Notification {
        self.notification.insert(notification)
    }

    pub fn end(&mut self, outcome: &Outcome) {
        self.ended = true;
        self.write(outcome);
    }

    fn write(&self, outcome: &Outcome) {
        let message_id = self.record.message_id.as_ref().map(|id| id.as_str());
        let notification = self.notification.as_ref();
        let tagged = notification.and_then(|notification| notification.tagged.as_ref());
        let event_id = tagged.map(|tagged| tagged.key.as_str());
        let event_type = tagged.map(|tagged| tagged.event_type.as_str());
        let ses_message_id = notification
            .and_then(|notification| notification.ses_message_id.as_ref())
            .map(|id| id.as_str());
        let kind = notification.map(|notification| notification.kind.name());
        macro_rules! line {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    outcome = outcome.name(),
                    kind,
                    event_id,
                    event_type,
                    message_id,
                    ses_message_id,
                    receive_count = self.record.receive_count,
                    request_id = self.request_id,
                    reason = outcome.reason(),
                    code = outcome.code(),
                    cause = outcome.cause(),
                    $message
                )
            };
        }
        match outcome {
            Outcome::Recorded(Recorded::Settled) => {
                count(Count::SettledBySes);
                notification.map(count_kind);
                line!(info, "SES took the email: its claim was completed");
            }
            Outcome::Recorded(Recorded::SecondEmail) => {
                count(Count::SecondEmails);
                line!(error, "a second email left for the same event");
            }
            Outcome::Recorded(Recorded::New) => {
                notification.map(count_kind);
                line!(info, "recorded what SES said of an email");
            }
            Outcome::Recorded(Recorded::Known) => {
                line!(info, "duplicate: this was recorded before");
            }
            Outcome::Greeting => line!(info, "SES greeted its new destination"),
            Outcome::Malformed(_) => {
                count(Count::Refused);
                line!(error, "refused: not a notification from SES");
            }
            Outcome::Data(_) => {
                count(Count::Refused);
                line!(
                    error,
                    "refused: Postgres does not take what the notification says"
                );
            }
            Outcome::DatabaseSetup(_) | Outcome::Panicked => {
                count(Count::SetupErrors);
                line!(
                    error,
                    "released: the notification comes back, and needs you"
                );
            }
            Outcome::Database(_) | Outcome::CutOff => {
                count(Count::Released);
                line!(warn, "released: the notification comes back");
            }
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(&Outcome::CutOff);
        }
    }
}

fn count_kind(notification: &Notification) {
    match notification.kind {
        Kind::Bounce
            if notification
                .detail
                .get("bounceType")
                .and_then(Value::as_str)
                == Some("Permanent") =>
        {
            count(Count::Bounces);
        }
        Kind::Complaint => count(Count::Complaints),
        _ => {}
    }
}
