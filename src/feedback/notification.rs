//! A notification from SES, read from its message.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::emails::is_event_type;
use crate::receive::{self, IdempotencyKey, Malformed};
use crate::send::SesMessageId;

use super::kind::Kind;

/// What SES says of an email.
#[derive(Debug, PartialEq)]
pub struct Notification {
    pub kind: Kind,
    /// As SES wrote it, RFC 3339; Postgres reads it.
    pub occurred_at: String,
    pub ses_message_id: Option<SesMessageId>,
    /// `None` for an email without our tags.
    pub tagged: Option<Tagged>,
    pub detail: Value,
}

/// The event that an email was sent for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    pub key: IdempotencyKey,
    pub event_type: String,
}

/// Why a message is no notification. It never repeats what the message says.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotANotification {
    /// SES greets a topic once when it is connected.
    #[error("SES's greeting to a new destination")]
    Greeting,
    #[error("{0}")]
    Malformed(Malformed),
    #[error("it has no `eventType` and no `notificationType`")]
    NoKind,
    #[error("it says nothing of when it happened")]
    NoTime,
}

const GREETING: &str = "Successfully validated SNS topic for Amazon SES event publishing";

impl Notification {
    /// Bare, inside an SNS notification, or inside an EventBridge event.
    ///
    /// # Errors
    /// The message is no notification.
    pub fn parse(body: Option<&str>) -> Result<Self, NotANotification> {
        let body = body.ok_or(NotANotification::Malformed(Malformed::NoBody))?;
        let told = receive::open_envelope(body).map_err(|malformed| {
            // It is plain text, also inside an envelope.
            if body.contains(GREETING) {
                NotANotification::Greeting
            } else {
                NotANotification::Malformed(malformed)
            }
        })?;
        let kind = ["eventType", "notificationType"]
            .iter()
            .find_map(|name| told.get(*name)?.as_str())
            .map(Kind::parse)
            .ok_or(NotANotification::NoKind)?;
        let nothing = Map::new();
        let object = |name: &str| {
            told.get(name)
                .and_then(Value::as_object)
                .unwrap_or(&nothing)
        };
        let mail = object("mail");
        let more = kind.field().map_or(&nothing, object);
        let occurred_at = [more, mail]
            .iter()
            .find_map(|object| object.get("timestamp")?.as_str())
            .filter(|time| is_time(time))
            .ok_or(NotANotification::NoTime)?;
        Ok(Self {
            occurred_at: occurred_at.to_owned(),
            ses_message_id: mail
                .get("messageId")
                .and_then(Value::as_str)
                .and_then(SesMessageId::parse),
            tagged: mail
                .get("tags")
                .and_then(Value::as_object)
                .and_then(Tagged::by),
            detail: kind.detail(more),
            kind,
        })
    }
}

impl Tagged {
    /// SES gives each tag as a list of values.
    fn by(tags: &Map<String, Value>) -> Option<Self> {
        let tag = |name: &str| match tags.get(name)? {
            Value::Array(values) => values.first()?.as_str(),
            value => value.as_str(),
        };
        let key = match (tag("event_id"), tag("event_id_b64")) {
            (Some(key), _) => IdempotencyKey::parse(key),
            (None, Some(encoded)) => URL_SAFE_NO_PAD
                .decode(encoded)
                .ok()
                .and_then(|key| String::from_utf8(key).ok())
                .and_then(|key| IdempotencyKey::parse(&key)),
            (None, None) => None,
        }?;
        // Written so by `compose`: an event type has dots, a tag has not.
        let event_type = tag("event_type")?.replace('-', ".");
        is_event_type(&event_type).then_some(())?;
        Some(Self { key, event_type })
    }
}

/// Enough to know that Postgres will read it: 2026-11-30T00:00:00.000Z.
fn is_time(text: &str) -> bool {
    let shape = |pattern: &str| {
        text.len() >= pattern.len()
            && text.bytes().zip(pattern.bytes()).all(|(byte, of)| {
                if of == b'0' {
                    byte.is_ascii_digit()
                } else {
                    byte == of
                }
            })
    };
    shape("0000-00-00T00:00:00")
        && text
            .bytes()
            .skip(19)
            .all(|byte| byte.is_ascii_digit() || b".:Z+-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn send() -> Value {
        json!({
            "eventType": "Send",
            "mail": {
                "timestamp": "2026-11-30T12:00:00.000Z",
                "messageId": "m-1",
                "destination": ["sam@example.com"],
                "tags": {
                    "ses:configuration-set": ["onemail"],
                    "event_type": ["application-status_changed"],
                    "event_id": ["e-1"],
                },
            },
            "send": {},
        })
    }

    fn parse(body: &Value) -> Result<Notification, NotANotification> {
        Notification::parse(Some(&body.to_string()))
    }

    #[test]
    fn a_notification_is_read_bare_and_in_its_envelopes() {
        let bare = parse(&send()).unwrap();
        assert_eq!(bare.kind, Kind::Send);
        assert_eq!(bare.occurred_at, "2026-11-30T12:00:00.000Z");
        assert_eq!(bare.ses_message_id, SesMessageId::parse("m-1"));
        let tagged = bare.tagged.clone().unwrap();
        assert_eq!(tagged.key.as_str(), "e-1");
        assert_eq!(tagged.event_type, "application.status_changed");

        let sns = json!({ "Type": "Notification", "Message": send().to_string() });
        assert_eq!(parse(&sns).unwrap(), bare);
        let event_bridge =
            json!({ "detail-type": "Email Sent", "source": "aws.ses", "detail": send() });
        assert_eq!(parse(&event_bridge).unwrap(), bare);
    }

    #[test]
    fn an_encoded_key_is_decoded() {
        let mut notification = send();
        notification["mail"]["tags"] = json!({
            "event_type": ["order-placed"], "event_id_b64": ["Pz8-"],
        });
        assert_eq!(
            parse(&notification).unwrap().tagged.unwrap().key.as_str(),
            "??>"
        );
    }

    #[test]
    fn without_our_tags_a_notification_has_no_key_and_is_no_error() {
        for tags in [
            json!(null),
            json!({}),
            json!({ "event_id": ["e-1"] }),
            json!({ "event_type": ["order-placed"] }),
            json!({ "event_type": ["order-placed"], "event_id_b64": ["%"] }),
            json!({ "event_type": ["order-placed"], "event_id": ["a b"] }),
            json!({ "event_type": ["order-placed"], "event_id": [] }),
        ] {
            let mut notification = send();
            notification["mail"]["tags"] = tags;
            assert_eq!(parse(&notification).unwrap().tagged, None);
        }
    }

    #[test]
    fn what_happened_last_is_the_time() {
        let mut notification = send();
        notification["eventType"] = json!("Bounce");
        notification["bounce"] = json!({ "timestamp": "2026-11-30T12:00:07.000Z" });
        assert_eq!(
            parse(&notification).unwrap().occurred_at,
            "2026-11-30T12:00:07.000Z"
        );
    }

    #[test]
    fn what_is_no_notification_is_refused() {
        assert_eq!(
            Notification::parse(Some(&format!("{GREETING}."))),
            Err(NotANotification::Greeting)
        );
        assert_eq!(parse(&json!({ "mail": {} })), Err(NotANotification::NoKind));
        assert_eq!(
            parse(&json!({ "eventType": "Send", "mail": { "timestamp": "yesterday" } })),
            Err(NotANotification::NoTime)
        );
        assert!(matches!(
            Notification::parse(Some("{")),
            Err(NotANotification::Malformed(_))
        ));
    }
}
