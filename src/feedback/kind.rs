//! What SES tells of an email: <https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html>.

use serde_json::{Map, Value, json};

/// What happened to an email.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SES took it, and will try to deliver it.
    Send,
    Delivery,
    Bounce,
    Complaint,
    Reject,
    Delay,
    RenderingFailure,
    Subscription,
    Open,
    Click,
    /// One that SES didn't have when this was written.
    Other(String),
}

/// What SES says of one kind.
struct Row {
    kind: Kind,
    /// As `eventType` names it; that of identities' own notifications, `notificationType`, uses the same words.
    event_type: &'static str,
    /// As `email_feedback.kind` has it.
    name: &'static str,
    /// The notification's field that tells more.
    field: &'static str,
    /// Which values of it are kept: words and times that SES writes.
    kept: &'static [&'static str],
    /// Its list of recipients.
    recipients: Option<&'static str>,
    /// Whether SES must have accepted the email to say so. `Send` says it for each; the others are as good where that
    /// one was lost or comes later, since SES keeps no order.
    proves_acceptance: bool,
}

#[rustfmt::skip]
static TABLE: [Row; 10] = [
    Row { kind: Kind::Send, event_type: "Send", name: "send", field: "send", kept: &[], recipients: None, proves_acceptance: true },
    Row { kind: Kind::Delivery, event_type: "Delivery", name: "delivery", field: "delivery",
          kept: &["processingTimeMillis", "reportingMTA"], recipients: Some("recipients"), proves_acceptance: true },
    Row { kind: Kind::Bounce, event_type: "Bounce", name: "bounce", field: "bounce",
          kept: &["bounceType", "bounceSubType", "feedbackId", "reportingMTA"], recipients: Some("bouncedRecipients"), proves_acceptance: true },
    Row { kind: Kind::Complaint, event_type: "Complaint", name: "complaint", field: "complaint",
          kept: &["complaintFeedbackType", "complaintSubType", "feedbackId"], recipients: Some("complainedRecipients"), proves_acceptance: true },
    Row { kind: Kind::Reject, event_type: "Reject", name: "reject", field: "reject",
          kept: &["reason"], recipients: None, proves_acceptance: true },
    Row { kind: Kind::Delay, event_type: "DeliveryDelay", name: "delay", field: "deliveryDelay",
          kept: &["delayType", "expirationTime"], recipients: Some("delayedRecipients"), proves_acceptance: true },
    Row { kind: Kind::RenderingFailure, event_type: "Rendering Failure", name: "rendering_failure", field: "failure",
          kept: &["templateName"], recipients: None, proves_acceptance: false },
    Row { kind: Kind::Subscription, event_type: "Subscription", name: "subscription", field: "subscription",
          kept: &["contactList", "source"], recipients: None, proves_acceptance: false },
    Row { kind: Kind::Open, event_type: "Open", name: "open", field: "open", kept: &[], recipients: None, proves_acceptance: true },
    Row { kind: Kind::Click, event_type: "Click", name: "click", field: "click", kept: &[], recipients: None, proves_acceptance: true },
];

impl Kind {
    pub(super) fn parse(event_type: &str) -> Self {
        TABLE
            .iter()
            .find(|row| row.event_type == event_type)
            .map_or_else(|| Self::Other(word(event_type)), |row| row.kind.clone())
    }

    fn row(&self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.kind == *self)
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => known.row().map_or("unknown", |row| row.name),
        }
    }

    pub(super) fn proves_acceptance(&self) -> bool {
        self.row().is_some_and(|row| row.proves_acceptance)
    }

    pub(super) fn field(&self) -> Option<&'static str> {
        self.row().map(|row| row.field)
    }

    /// What is kept of it. Nothing of the recipients but their number and status codes (RFC 3463), and no diagnostic
    /// texts, which quote addresses; the key leads to the recipient.
    pub(super) fn detail(&self, told: &Map<String, Value>) -> Value {
        let mut detail = Map::new();
        let Some(row) = self.row() else {
            return Value::Object(detail);
        };
        for name in row.kept {
            if let Some(value @ (Value::String(_) | Value::Number(_))) = told.get(*name) {
                detail.insert((*name).to_owned(), value.clone());
            }
        }
        let recipients = row.recipients.and_then(|list| told.get(list)?.as_array());
        if let Some(recipients) = recipients {
            let statuses: Vec<&str> = recipients
                .iter()
                .filter_map(|recipient| recipient.get("status")?.as_str())
                .collect();
            detail.insert("recipients".into(), json!(recipients.len()));
            if !statuses.is_empty() {
                detail.insert("statuses".into(), json!(statuses));
            }
        }
        Value::Object(detail)
    }
}

/// A name not known yet, as a word: `New Kind` as `new_kind`.
fn word(name: &str) -> String {
    let word: String = name
        .chars()
        .take(64)
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    if word.is_empty() {
        "unknown".to_owned()
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_not_known_yet_is_kept_as_a_word() {
        assert_eq!(Kind::parse("Inbox Placement!").name(), "inbox_placement_");
        assert_eq!(Kind::parse("").name(), "unknown");
    }

    #[test]
    fn every_kind_has_one_row() {
        for row in &TABLE {
            assert_eq!(Kind::parse(row.event_type), row.kind);
            assert_eq!(row.kind.name(), row.name);
        }
    }

    #[test]
    fn nothing_of_a_recipient_is_kept() {
        let told = json!({
            "bounceType": "Permanent",
            "bounceSubType": "General",
            "bouncedRecipients": [{
                "emailAddress": "sam@example.com",
                "status": "5.1.1",
                "diagnosticCode": "smtp; 550 5.1.1 <sam@example.com> unknown",
            }],
            "timestamp": "2026-11-30T00:00:00.000Z",
            "feedbackId": "f-1",
        });
        let detail = Kind::Bounce.detail(told.as_object().unwrap());
        assert_eq!(
            detail,
            json!({
                "bounceType": "Permanent",
                "bounceSubType": "General",
                "feedbackId": "f-1",
                "recipients": 1,
                "statuses": ["5.1.1"],
            })
        );
        assert!(!detail.to_string().contains("sam"));
    }
}
