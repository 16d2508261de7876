//! How the handling of a notification ended, and its one line in the log.

use std::time::Duration;

use serde_json::Value;

use crate::database::{DatabaseError, DatabaseVerdict};
use crate::metrics::{Count, count};
use crate::queue::{Record, backoff};

use super::kind::Kind;
use super::notification::{NotANotification, Notification};
use super::record::Recorded;

/// After a worker in mid-send held the key: by then it has committed, or Postgres has rolled it back.
const BEHIND_A_WORKER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) enum Outcome {
    Recorded(Recorded),
    Greeting,
    /// It stays on the queue until the redrive policy moves it.
    Malformed(NotANotification),
    Database(DatabaseError),
    Panicked,
}

impl Outcome {
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Recorded(_) | Self::Greeting)
    }

    pub fn comes_back_after(&self, receive_count: u32) -> Option<Duration> {
        match self {
            Self::Database(error) if error.code() == "55P03" => Some(BEHIND_A_WORKER),
            Self::Database(error) if error.verdict() != DatabaseVerdict::Never => {
                Some(backoff(receive_count))
            }
            Self::Panicked => Some(backoff(receive_count)),
            _ => None,
        }
    }
}

pub(super) fn write(
    outcome: &Outcome,
    record: &Record,
    notification: Option<&Notification>,
    request_id: &str,
) {
    let message_id = record.message_id.as_ref().map(|id| id.as_str());
    let tagged = notification.and_then(|notification| notification.tagged.as_ref());
    let event_id = tagged.map(|tagged| tagged.key.as_str());
    let event_type = tagged.map(|tagged| tagged.event_type.as_str());
    let ses_message_id = notification
        .and_then(|notification| notification.ses_message_id.as_ref())
        .map(|id| id.as_str());
    let kind = notification.map(|notification| notification.kind.name());
    macro_rules! line {
        ($level:ident, $outcome:literal, $message:literal $(, $field:ident = $value:expr)*) => {
            tracing::$level!(
                outcome = $outcome,
                kind,
                event_id,
                event_type,
                message_id,
                ses_message_id,
                receive_count = record.receive_count,
                request_id,
                $($field = $value,)*
                $message
            )
        };
    }
    match outcome {
        Outcome::Recorded(Recorded::Settled) => {
            count(Count::SettledBySes);
            line!(
                info,
                "settled",
                "SES took the email: its claim was completed"
            );
        }
        Outcome::Recorded(Recorded::SecondEmail) => {
            count(Count::SecondEmails);
            line!(
                error,
                "second_email",
                "a second email left for the same event"
            );
        }
        Outcome::Recorded(Recorded::New) => {
            if let Some(notification) = notification {
                count_kind(notification);
            }
            line!(info, "recorded", "recorded what SES said of an email");
        }
        Outcome::Recorded(Recorded::Known) => {
            line!(info, "duplicate", "duplicate: this was recorded before");
        }
        Outcome::Greeting => line!(info, "greeting", "SES greeted its new destination"),
        Outcome::Malformed(problem) => {
            count(Count::Refused);
            line!(
                error,
                "refused",
                "refused: not a notification from SES",
                reason = "malformed",
                cause = problem.to_string()
            );
        }
        Outcome::Database(error) => {
            count(Count::Released);
            line!(
                warn,
                "released",
                "released: the notification comes back",
                reason = "database",
                code = error.code(),
                cause = error.cause()
            );
        }
        Outcome::Panicked => {
            count(Count::SetupErrors);
            line!(
                error,
                "released",
                "released: the notification comes back, and needs you",
                reason = "panic"
            );
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
