//! The one line that each record leaves in the log, and what is counted of it.

use std::time::SystemTime;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::metrics::{Count, Time, count, count_with_reason, took_since};
use crate::queue::Record;
use crate::receive::Event;
use crate::send::SesMessageId;

use super::outcome::{Outcome, Refusal, Release};

/// What is known of a record so far; nothing in it is personal.
///
/// Dropped before its end, when the batch is cut off, it writes what is true then.
pub(super) struct Line {
    started: Instant,
    request_id: String,
    message_id: Option<String>,
    event_id: Option<String>,
    event_type: Option<String>,
    receive_count: u32,
    sent_at: Option<SystemTime>,
    redirected: bool,
    detail: Map<String, Value>,
    accepted: Option<SesMessageId>,
    ended: bool,
}

impl Line {
    pub fn new(record: &Record, event: Option<&Event<'_>>, request_id: &str) -> Self {
        Self {
            started: Instant::now(),
            request_id: request_id.to_owned(),
            message_id: record.message_id.as_ref().map(ToString::to_string),
            event_id: event.map(|event| event.key.to_string()),
            event_type: event.map(|event| event.event_type().to_owned()),
            receive_count: record.receive_count,
            sent_at: record.sent_at,
            redirected: false,
            detail: event
                .map(|event| event.folder.safe_event_fields(&event.fields))
                .unwrap_or_default(),
            accepted: None,
            ended: false,
        }
    }

    /// The record's turn has come.
    pub fn begin(&mut self) {
        self.started = Instant::now();
    }

    /// Fields or columns that the email's folder names as safe to log.
    pub fn tell(&mut self, safe: Map<String, Value>) {
        self.detail.extend(safe);
    }

    pub fn redirected(&mut self) {
        self.redirected = true;
    }

    /// SES has the email.
    pub fn accepted(&mut self, id: &SesMessageId) {
        if let Some(sent_at) = self.sent_at {
            took_since(Time::ArrivalToAcceptance, sent_at);
        }
        self.accepted = Some(id.clone());
    }

    /// What is true of a record whose walk was cut short.
    pub fn cut_short(&self, why: Release) -> Outcome {
        match &self.accepted {
            Some(id) => Outcome::Sent(id.clone()),
            None => Outcome::Released(why),
        }
    }

    pub fn end(&mut self, outcome: &Outcome) {
        self.ended = true;
        self.write(outcome);
    }

    fn write(&self, outcome: &Outcome) {
        let Said {
            ses_message_id,
            reason,
            code,
            cause,
        } = Said::by(outcome);
        let detail = Value::Object(self.detail.clone()).to_string();
        macro_rules! line {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    outcome = outcome.name(),
                    event_id = self.event_id,
                    event_type = self.event_type,
                    message_id = self.message_id,
                    ses_message_id,
                    reason,
                    code,
                    cause,
                    receive_count = self.receive_count,
                    redirected = self.redirected.then_some(true),
                    elapsed_ms = self.started.elapsed().as_millis() as u64,
                    request_id = self.request_id,
                    detail,
                    $message
                )
            };
        }
        match outcome {
            Outcome::Sent(_) => {
                count(Count::Sent);
                line!(info, "email sent");
            }
            Outcome::Duplicate => {
                count(Count::Duplicates);
                line!(info, "duplicate: the event was handled before");
            }
            Outcome::Skipped => {
                count(Count::Skipped);
                line!(warn, "skipped: there is nobody to write to any more");
            }
            Outcome::Withheld => {
                count(Count::Withheld);
                line!(
                    warn,
                    "withheld: the recipient is not on RECIPIENT_ALLOW_LIST"
                );
            }
            Outcome::Refused(Refusal::Held) => {
                count(Count::Held);
                line!(
                    error,
                    "held: nobody knows whether the email was sent; it is not sent again until you decide"
                );
            }
            Outcome::DeadLettered(Refusal::Held) => {
                count(Count::Held);
                count(Count::DeadLettered);
                line!(
                    error,
                    "held and moved to the dead-letter queue: nobody knows whether the email was sent; it is not \
                     sent again until you decide"
                );
            }
            Outcome::Refused(refusal) => {
                count_with_reason(Count::Refused, refusal.reason());
                line!(error, "refused: the event can never be sent");
            }
            Outcome::DeadLettered(refusal) => {
                count_with_reason(Count::Refused, refusal.reason());
                count(Count::DeadLettered);
                line!(
                    error,
                    "refused and moved to the dead-letter queue: the event can never be sent"
                );
            }
            Outcome::Released(release) if release.passes() => {
                count_with_reason(Count::Released, release.reason());
                line!(warn, "released: the event comes back");
            }
            Outcome::Released(release) => {
                count_with_reason(Count::SetupErrors, release.reason());
                line!(error, "released: the event comes back, and needs you");
            }
            Outcome::Unknown(_) => {
                count(Count::OutcomeUnknown);
                line!(
                    warn,
                    "outcome unknown: SES may have sent it; the event comes back"
                );
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.ended {
            self.end(&self.cut_short(Release::CutOff));
        }
    }
}

/// What an outcome has to say beyond its name.
#[derive(Default)]
struct Said<'a> {
    ses_message_id: Option<&'a str>,
    reason: Option<&'a str>,
    code: Option<&'a str>,
    cause: Option<String>,
}

impl<'a> Said<'a> {
    fn by(outcome: &'a Outcome) -> Self {
        match outcome {
            Outcome::Sent(id) => Self {
                ses_message_id: Some(id.as_str()),
                ..Self::default()
            },
            Outcome::Refused(refusal) | Outcome::DeadLettered(refusal) => Self::refusal(refusal),
            Outcome::Released(release) => Self::release(release),
            Outcome::Unknown(cause) => Self {
                code: Some(&cause.code),
                cause: Some(cause.detail.clone()),
                ..Self::default()
            },
            Outcome::Duplicate | Outcome::Skipped | Outcome::Withheld => Self::default(),
        }
    }

    fn refusal(refusal: &'a Refusal) -> Self {
        Self {
            reason: Some(refusal.reason()),
            code: refusal.code(),
            cause: Some(refusal.to_string()),
            ses_message_id: None,
        }
    }

    fn release(release: &'a Release) -> Self {
        Self {
            reason: Some(release.reason()),
            code: release.code(),
            cause: Some(release.to_string()),
            ses_message_id: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::logging::lines_of;
    use crate::queue::Batch;

    use super::*;

    fn line() -> Line {
        let batch = json!({ "Records": [{ "messageId": "m-1", "body": "" }] });
        Line::new(&Batch::parse(batch).unwrap().records[0], None, "r-1")
    }

    #[test]
    fn a_record_that_is_cut_off_leaves_its_line() {
        let lines = lines_of(|| drop(line()));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["outcome"], "released");
        assert_eq!(lines[0]["reason"], "cut_off");
        assert_eq!(lines[0]["message_id"], "m-1");
    }

    #[test]
    fn a_record_that_is_cut_off_after_ses_accepted_is_sent() {
        let lines = lines_of(|| line().accepted(&SesMessageId::parse("ses-1").unwrap()));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["outcome"], "sent");
        assert_eq!(lines[0]["ses_message_id"], "ses-1");
    }

    #[test]
    fn a_record_that_ended_leaves_one_line() {
        let lines = lines_of(|| line().end(&Outcome::Duplicate));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["outcome"], "duplicate");
    }
}
