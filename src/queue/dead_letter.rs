//! The dead-letter queue, for what can never be sent.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use serde_json::Value;
use thiserror::Error;

use crate::causes::told;
use crate::logging::mask_addresses;

use super::client::Queue;
use super::record::Record;

/// SQS takes no more attributes of a message.
const MOST_ATTRIBUTES: usize = 10;

/// Where an event that can never be sent is moved at once, from `DEAD_LETTER_QUEUE_URL`.
pub struct DeadLetters {
    url: String,
}

/// A message and why it is given up.
pub struct DeadLetter<'a> {
    pub record: &'a Record,
    /// A word, such as `malformed`.
    pub reason: &'a str,
    /// A sentence, without values of the event.
    pub detail: &'a str,
    pub event_id: Option<&'a str>,
}

#[derive(Debug, Error)]
pub enum NotMoved {
    #[error("the message has no body")]
    NoBody,
    #[error("the message has {MOST_ATTRIBUTES} attributes, which leaves no room for the reason")]
    NoRoom,
    #[error("SQS did not take it: {0}")]
    Sqs(String),
    #[error("the SDK panicked")]
    Panicked,
}

impl DeadLetters {
    pub fn new(url: String) -> Self {
        Self { url }
    }

    /// Moves a copy there: body and attributes as they came, and the reason in attributes of our own. Done twice
    /// it leaves two copies, and loses none.
    ///
    /// # Errors
    /// The message must be reported, so that the redrive policy moves it.
    pub async fn put(&self, queue: &Queue, letter: &DeadLetter<'_>) -> Result<(), NotMoved> {
        let record = letter.record;
        // SQS takes no empty body.
        let body = record
            .body
            .as_deref()
            .filter(|body| !body.is_empty())
            .ok_or(NotMoved::NoBody)?;
        let mut attributes = record
            .message_attributes
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), passed_on(value)?)))
            .collect::<HashMap<_, _>>();
        // The reason first, should there be room for one alone.
        let own = [
            ("onemail_reason", Some(letter.reason)),
            ("onemail_detail", Some(letter.detail)),
            (
                "onemail_message_id",
                record.message_id.as_ref().map(|id| id.as_str()),
            ),
            // The key itself is in the body.
            ("onemail_event_id", letter.event_id),
        ];
        for (name, value) in own {
            let Some(value) = value.map(mask_addresses) else {
                continue;
            };
            if attributes.len() < MOST_ATTRIBUTES || attributes.contains_key(name) {
                attributes.insert(name.to_owned(), text(&value));
            } else if name == "onemail_reason" {
                return Err(NotMoved::NoRoom);
            }
        }
        let fifo = self.url.ends_with(".fifo");
        let message_id = record.message_id.as_ref().map(ToString::to_string);
        let group = record.fifo_group.clone().filter(|group| !group.is_empty());
        let sent = queue
            .client()
            .send_message()
            .queue_url(&self.url)
            .message_body(body)
            .set_message_attributes(Some(attributes))
            .set_message_group_id(fifo.then(|| group.unwrap_or_else(|| "onemail".to_owned())))
            .set_message_deduplication_id(message_id.filter(|_| fifo))
            .send();
        // The SDK panics over a variable of its own that is set to nothing; the neighbours shall not suffer for it.
        match AssertUnwindSafe(sent).catch_unwind().await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(NotMoved::Sqs(told(&error))),
            Err(_) => Err(NotMoved::Panicked),
        }
    }
}

fn text(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder()
        .data_type("String")
        .string_value(value)
        .build()
        .expect("it has a data type")
}

/// An attribute of a record, as it was sent. `None` for one without a value, which SQS would refuse.
fn passed_on(attribute: &Value) -> Option<MessageAttributeValue> {
    let field = |name: &str| attribute.get(name).and_then(Value::as_str);
    let value = MessageAttributeValue::builder().data_type(field("dataType")?);
    let value = match (field("stringValue"), field("binaryValue")) {
        (Some(text), _) => value.string_value(text),
        // Lambda writes it in base64.
        (None, Some(binary)) => value.binary_value(Blob::new(STANDARD.decode(binary).ok()?)),
        (None, None) => return None,
    };
    value.build().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attributes_are_passed_on_as_they_were_sent() {
        let number = passed_on(&json!({
            "stringValue": "7", "dataType": "Number.int",
            "stringListValues": [], "binaryListValues": null,
        }))
        .unwrap();
        assert_eq!(number.data_type(), "Number.int");
        assert_eq!(number.string_value(), Some("7"));
        let binary = passed_on(&json!({ "binaryValue": "AAEC", "dataType": "Binary" })).unwrap();
        assert_eq!(binary.binary_value().unwrap().as_ref(), [0, 1, 2]);
        for odd in [json!({}), json!(null), json!({ "dataType": "String" })] {
            assert_eq!(passed_on(&odd), None);
        }
    }
}
