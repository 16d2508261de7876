//! One SQS message of a batch, read leniently.
//!
//! The types of `aws_lambda_events` refuse a whole batch for one odd message attribute, and read a missing
//! identifier as an empty one; so what we need is picked out of the JSON here.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

/// SQS's id of a message; never empty, since an empty identifier in the answer fails the whole batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageId(String);

impl MessageId {
    pub fn parse(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug)]
pub struct Record {
    pub message_id: Option<MessageId>,
    /// `None` where there is none or it is no text.
    pub body: Option<String>,
    /// As it came, to be passed on unchanged.
    pub message_attributes: Map<String, Value>,
    /// How often SQS has handed it out, this time included; 0 where that isn't known.
    pub receive_count: u32,
    /// When the producer sent it, by SQS's clock.
    pub sent_at: Option<SystemTime>,
    /// The message group, on a FIFO queue.
    pub fifo_group: Option<String>,
    pub receipt_handle: Option<String>,
    pub queue_arn: Option<String>,
}

impl Record {
    pub(super) fn parse(record: Value) -> Self {
        let text = |name: &str| {
            record
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let attribute = |name: &str| {
            record
                .get("attributes")
                .and_then(|attributes| attributes.get(name))
                .and_then(Value::as_str)
        };
        let queue_arn = text("eventSourceARN");
        // A standard queue can have groups too (fair queues), without an order in them.
        let fifo = queue_arn.is_some_and(|arn| arn.ends_with(".fifo"));
        Self {
            message_id: text("messageId").and_then(MessageId::parse),
            body: record
                .get("body")
                .and_then(Value::as_str)
                .map(str::to_owned),
            message_attributes: record
                .get("messageAttributes")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
            receive_count: attribute("ApproximateReceiveCount")
                .and_then(|count| count.parse().ok())
                .unwrap_or(0),
            sent_at: attribute("SentTimestamp")
                .and_then(|milliseconds| milliseconds.parse().ok())
                .and_then(|milliseconds| {
                    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
                }),
            fifo_group: fifo.then(|| attribute("MessageGroupId").unwrap_or_default().to_owned()),
            receipt_handle: text("receiptHandle").map(str::to_owned),
            queue_arn: queue_arn.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_shapes_are_read_as_far_as_they_go() {
        let record = Record::parse(json!({
            "messageId": "m-1",
            "body": "{}",
            "attributes": { "ApproximateReceiveCount": "3", "MessageGroupId": "g" },
            "messageAttributes": { "a": { "stringListValues": null, "binaryValue": "AAEC" } },
            "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:events",
        }));
        assert_eq!(record.message_id, MessageId::parse("m-1"));
        assert_eq!(record.receive_count, 3);
        assert_eq!(record.fifo_group, None);

        let record = Record::parse(json!({ "messageId": "", "body": 7, "attributes": null }));
        assert_eq!(record.message_id, None);
        assert_eq!(record.body, None);
        assert_eq!(record.receive_count, 0);

        assert_eq!(Record::parse(json!("text")).message_id, None);
    }

    #[test]
    fn only_a_fifo_queue_has_ordered_groups() {
        let record = Record::parse(json!({
            "attributes": { "MessageGroupId": "g" },
            "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:events.fifo",
        }));
        assert_eq!(record.fifo_group.as_deref(), Some("g"));
    }
}
