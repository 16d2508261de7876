//! What SES tells of an email, as it documents it, and the wrappings in which it comes.
//!
//! The samples follow
//! <https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-examples.html>, with our tags.

use std::path::Path;

use serde_json::{Value, json};

use super::event::{self, Record};
use super::mail::SendEmail;

/// Every sample of a configuration set's notifications, for the event `told`.
pub const SAMPLES: [&str; 11] = [
    "send",
    "delivery",
    "bounce",
    "complaint",
    "reject",
    "delivery_delay",
    "rendering_failure",
    "subscription",
    "open",
    "click",
    "unknown_kind",
];

pub fn text(file: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/notifications");
    let file = directory.join(file);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

pub fn sample(name: &str) -> Value {
    serde_json::from_str(&text(&format!("{name}.json"))).expect("a sample is JSON")
}

/// SES took an email with this id, for this event.
pub fn send(event_id: &str, ses_message_id: &str) -> Value {
    about(sample("send"), event_id, ses_message_id)
}

/// The notification, but of this email.
pub fn about(mut notification: Value, event_id: &str, ses_message_id: &str) -> Value {
    notification["mail"]["messageId"] = ses_message_id.into();
    notification["mail"]["tags"]["event_id"] = json!([event_id]);
    notification
}

/// What the configuration set tells of an email that SES took: the tags are those of the request.
pub fn of_email(name: &str, email: &SendEmail) -> Value {
    let mut notification = sample(name);
    let mail = &mut notification["mail"];
    mail["messageId"] = email.message_id.as_str().into();
    let mut tags = json!({ "ses:operation": ["SendEmail"], "ses:configuration-set": ["onemail"] });
    for tag in email.body["EmailTags"].as_array().into_iter().flatten() {
        let name = tag["Name"].as_str().expect("a tag has a name");
        tags[name] = json!([tag["Value"]]);
    }
    mail["tags"] = tags;
    notification
}

/// As the queue of notifications hands it over, raw delivery being on.
pub fn record(message_id: &str, notification: &Value) -> Record {
    on_feedback_queue(Record::new(message_id, notification))
}

pub fn record_of_text(message_id: &str, body: &str) -> Record {
    on_feedback_queue(Record::with_body(message_id, body))
}

fn on_feedback_queue(record: Record) -> Record {
    record.with(
        "eventSourceARN",
        "arn:aws:sqs:eu-west-1:123456789012:onemail-feedback",
    )
}

/// Without raw delivery.
pub fn in_sns_envelope(notification: &Value) -> Value {
    let mut envelope = event::in_sns_envelope(notification);
    envelope["Subject"] = "Amazon SES Email Event Notification".into();
    envelope
}

pub fn in_eventbridge_envelope(notification: &Value) -> Value {
    json!({
        "version": "0",
        "id": "12a18625-3f2a-4c5e-8d5f-7a1b9c2d3e4f",
        "detail-type": "Email Sent",
        "source": "aws.ses",
        "account": "123456789012",
        "time": "2026-11-30T12:00:01Z",
        "region": "eu-west-1",
        "resources": ["arn:aws:ses:eu-west-1:123456789012:configuration-set/onemail"],
        "detail": notification,
    })
}
