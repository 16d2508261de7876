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

impl Kind {
    /// As `eventType` names it; that of identities' own notifications, `notificationType`, uses the same words.
    pub(super) fn parse(name: &str) -> Self {
        match name {
            "Send" => Self::Send,
            "Delivery" => Self::Delivery,
            "Bounce" => Self::Bounce,
            "Complaint" => Self::Complaint,
            "Reject" => Self::Reject,
            "DeliveryDelay" => Self::Delay,
            "Rendering Failure" => Self::RenderingFailure,
            "Subscription" => Self::Subscription,
            "Open" => Self::Open,
            "Click" => Self::Click,
            other => Self::Other(word(other)),
        }
    }

    /// As `email_feedback.kind` has it.
    pub fn name(&self) -> &str {
        match self {
            Self::Send => "send",
            Self::Delivery => "delivery",
            Self::Bounce => "bounce",
            Self::Complaint => "complaint",
            Self::Reject => "reject",
            Self::Delay => "delay",
            Self::RenderingFailure => "rendering_failure",
            Self::Subscription => "subscription",
            Self::Open => "open",
            Self::Click => "click",
            Self::Other(name) => name,
        }
    }

    /// Whether SES must have accepted the email to say so. `Send` says it for each; the others are as good where that
    /// one was lost or comes later, since SES keeps no order.
    pub(super) fn proves_acceptance(&self) -> bool {
        match self {
            Self::Send
            | Self::Delivery
            | Self::Bounce
            | Self::Complaint
            | Self::Reject
            | Self::Delay
            | Self::Open
            | Self::Click => true,
            Self::RenderingFailure | Self::Subscription | Self::Other(_) => false,
        }
    }

    /// The notification's field that tells more.
    pub(super) fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::Send => "send",
            Self::Delivery => "delivery",
            Self::Bounce => "bounce",
            Self::Complaint => "complaint",
            Self::Reject => "reject",
            Self::Delay => "deliveryDelay",
            Self::RenderingFailure => "failure",
            Self::Subscription => "subscription",
            Self::Open => "open",
            Self::Click => "click",
            Self::Other(_) => return None,
        })
    }

    /// What is kept of it: words and times of SES's. Nothing of the recipients but their number, and no
    /// diagnostic texts, which quote addresses; the key leads to the recipient.
    pub(super) fn detail(&self, told: &Map<String, Value>) -> Value {
        let kept: &[&str] = match self {
            Self::Send => &[],
            Self::Delivery => &["processingTimeMillis", "reportingMTA"],
            Self::Bounce => &["bounceType", "bounceSubType", "feedbackId", "reportingMTA"],
            Self::Complaint => &["complaintFeedbackType", "complaintSubType", "feedbackId"],
            Self::Reject => &["reason"],
            Self::Delay => &["delayType", "expirationTime"],
            Self::RenderingFailure => &["templateName"],
            Self::Subscription => &["contactList", "source"],
            Self::Open | Self::Click | Self::Other(_) => &[],
        };
        let mut detail = Map::new();
        for name in kept {
            if let Some(value @ (Value::String(_) | Value::Number(_))) = told.get(*name) {
                detail.insert((*name).to_owned(), value.clone());
            }
        }
        if let Some((count, statuses)) = self.recipients(told) {
            detail.insert("recipients".into(), json!(count));
            if !statuses.is_empty() {
                detail.insert("statuses".into(), json!(statuses));
            }
        }
        Value::Object(detail)
    }

    /// How many recipients it is about, and their status codes (RFC 3463), which name nobody.
    fn recipients<'a>(&self, told: &'a Map<String, Value>) -> Option<(usize, Vec<&'a str>)> {
        let list = match self {
            Self::Delivery => "recipients",
            Self::Bounce => "bouncedRecipients",
            Self::Complaint => "complainedRecipients",
            Self::Delay => "delayedRecipients",
            _ => return None,
        };
        let recipients = told.get(list)?.as_array()?;
        let statuses = recipients
            .iter()
            .filter_map(|recipient| recipient.get("status")?.as_str())
            .collect();
        Some((recipients.len(), statuses))
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
