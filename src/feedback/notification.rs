//! A notification from SES, read from its message.

use aws_sdk_sesv2::primitives::{DateTime, DateTimeFormat as Format};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::emails::is_event_type;
use crate::receive::{self, IdempotencyKey, Malformed, PayloadHash};
use crate::send::SesMessageId;

use super::kind::Kind;

/// What SES says of an email.
#[derive(Debug, PartialEq)]
pub struct Notification {
    pub kind: Kind,
    /// As SES wrote it, RFC 3339; Postgres reads it.
    pub occurred_at: String,
    pub ses_message_id: Option<SesMessageId>,
    /// `None` for an email without onemail's tags.
    pub tagged: Option<Tagged>,
    /// The id of the ledger that the email was sent from. `None` for an email of the version before, which had no
    /// such tag.
    pub ledger: Option<String>,
    /// The payload of the event that the email was sent for.
    pub payload_sha256: Option<PayloadHash>,
    pub detail: Value,
}

/// The event that an email was sent for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    pub key: IdempotencyKey,
    pub event_type: String,
}

/// Why a message is not a notification. It never repeats what the message says.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotANotification {
    /// SES greets a topic once when it is connected.
    #[error("the greeting of SES to a new destination")]
    Greeting,
    #[error("{0}")]
    Malformed(Malformed),
    #[error("it has no `eventType` and no `notificationType`")]
    NoKind,
    #[error("it says nothing of when it happened")]
    NoTime,
}

/// Of a configuration set's destination, in plain text.
const GREETING: &str = "Successfully validated SNS topic for Amazon SES event publishing";
/// Of an identity's topic: the type of its notification.
const IDENTITY_GREETING: &str = "AmazonSnsSubscriptionSucceeded";

impl Notification {
    /// Bare, inside an SNS notification, or inside an EventBridge event.
    ///
    /// # Errors
    /// The message is not a notification.
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
            .ok_or(NotANotification::NoKind)?;
        if kind == IDENTITY_GREETING {
            return Err(NotANotification::Greeting);
        }
        let kind = Kind::parse(kind);
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
            .filter(|time| DateTime::from_str(time, Format::DateTimeWithOffset).is_ok())
            .ok_or(NotANotification::NoTime)?;
        let tags = mail
            .get("tags")
            .and_then(Value::as_object)
            .unwrap_or(&nothing);
        Ok(Self {
            occurred_at: occurred_at.to_owned(),
            ses_message_id: mail
                .get("messageId")
                .and_then(Value::as_str)
                .and_then(SesMessageId::parse),
            tagged: Tagged::from_tags(tags),
            ledger: tag(tags, "ledger")
                .filter(|ledger| is_tag_value(ledger))
                .map(str::to_owned),
            payload_sha256: tag(tags, "payload_sha256").and_then(payload_hash),
            detail: kind.detail(more),
            kind,
        })
    }
}

impl Tagged {
    fn from_tags(tags: &Map<String, Value>) -> Option<Self> {
        let tag = |name: &str| tag(tags, name);
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

/// SES gives each tag as a list of values.
fn tag<'a>(tags: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    match tags.get(name)? {
        Value::Array(values) => values.first()?.as_str(),
        value => value.as_str(),
    }
}

/// What SES takes as the value of a tag, and so what onemail can have written.
fn is_tag_value(text: &str) -> bool {
    (1..=256).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn payload_hash(encoded: &str) -> Option<PayloadHash> {
    let hash = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    hash.try_into().ok().map(PayloadHash)
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
    fn without_tags_a_notification_has_no_key_and_is_not_an_error() {
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
    fn the_ledger_and_the_payload_are_read_from_their_tags_as_compose_writes_them() {
        let hash = PayloadHash([0xFB; 32]);
        let mut notification = send();
        for (name, value) in crate::compose::ledger_tags("3f2a-b_7", hash) {
            notification["mail"]["tags"][name] = json!([value]);
        }
        let read = parse(&notification).unwrap();
        assert_eq!(read.ledger.as_deref(), Some("3f2a-b_7"));
        assert_eq!(read.payload_sha256, Some(hash));
        for (ledger, payload) in [("", ""), ("a b", "%%"), ("a@b", "Pz8-"), ("\u{0}", "-_-_")] {
            notification["mail"]["tags"]["ledger"] = json!([ledger]);
            notification["mail"]["tags"]["payload_sha256"] = json!([payload]);
            let read = parse(&notification).unwrap();
            assert_eq!((read.ledger, read.payload_sha256), (None, None));
            assert!(read.tagged.is_some());
        }
    }

    #[test]
    fn the_greeting_of_an_identity_is_a_greeting_bare_and_in_its_envelopes() {
        let bare = json!({
            "notificationType": "AmazonSnsSubscriptionSucceeded",
            "message": "You have successfully subscribed your Amazon SNS topic 'arn:aws:sns:eu-west-1:1:t' to receive \
                        'Bounce' notifications from Amazon SES for identity 'example.com'.",
        });
        let sns = json!({ "Type": "Notification", "Message": bare.to_string() });
        let event_bridge = json!({ "detail-type": "x", "source": "aws.ses", "detail": bare });
        for greeting in [bare, sns, event_bridge] {
            assert_eq!(parse(&greeting), Err(NotANotification::Greeting));
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
    fn what_is_not_a_notification_is_refused() {
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
