//! Events as producers write them, and the batches in which SQS's event source mapping hands them over.

use serde_json::{Map, Value, json};

pub fn status_changed(
    event_id: &str,
    application_id: i64,
    old_status: &str,
    new_status: &str,
) -> Value {
    json!({
        "type": "application.status_changed",
        "event_id": event_id,
        "application_id": application_id,
        "old_status": old_status,
        "new_status": new_status,
    })
}

/// Sam's application 3 goes on to the interview.
pub fn interview(event_id: &str) -> Value {
    status_changed(event_id, 3, "reviewing", "interview")
}

pub fn order_placed(order_id: i64) -> Value {
    json!({ "type": "order.placed", "order_id": order_id })
}

/// As SNS hands it to a queue whose subscription doesn't ask for raw delivery.
pub fn in_sns_envelope(event: &Value) -> Value {
    json!({
        "Type": "Notification",
        "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
        "TopicArn": "arn:aws:sns:eu-west-1:123456789012:job-board",
        "Message": event.to_string(),
        "Timestamp": "2026-01-01T12:00:00.000Z",
        "SignatureVersion": "1",
        "Signature": "EXAMPLEpH+...",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0000.pem",
        "UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
    })
}

/// As an EventBridge rule hands it to a queue.
pub fn in_eventbridge_envelope(event: &Value) -> Value {
    json!({
        "version": "0",
        "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "detail-type": event["type"],
        "source": "job-board",
        "account": "123456789012",
        "time": "2026-01-01T12:00:00Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": event,
    })
}

/// A batch as the event source mapping hands it over.
pub fn batch(records: impl IntoIterator<Item = Record>) -> Value {
    json!({ "Records": records.into_iter().map(|record| Value::Object(record.0)).collect::<Vec<_>>() })
}

/// Of each record that doesn't say otherwise.
pub fn receipt_handle(message_id: &str) -> String {
    format!("AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a-{message_id}")
}

/// One message of the batch.
#[derive(Clone, Debug)]
pub struct Record(Map<String, Value>);

impl Record {
    pub fn new(message_id: &str, event: &Value) -> Self {
        Self::with_body(message_id, &event.to_string())
    }

    pub fn with_body(message_id: &str, body: &str) -> Self {
        let record = json!({
            "messageId": message_id,
            "receiptHandle": receipt_handle(message_id),
            "body": body,
            "attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": "1767268800000",
                "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                "ApproximateFirstReceiveTimestamp": "1767268800123",
            },
            "messageAttributes": {},
            "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:job-board-events",
            "awsRegion": "eu-west-1",
        });
        match record {
            Value::Object(fields) => Self(fields),
            _ => unreachable!("it is written as an object"),
        }
    }

    /// The message as it comes from a FIFO queue.
    pub fn in_group(mut self, group: &str) -> Self {
        self.0["attributes"]["MessageGroupId"] = group.into();
        self.0["attributes"]["MessageDeduplicationId"] = self.0["messageId"].clone();
        self.0["attributes"]["SequenceNumber"] = "18849496460467696128".into();
        self.with(
            "eventSourceARN",
            "arn:aws:sqs:eu-west-1:123456789012:job-board-events.fifo",
        )
    }

    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0.insert(field.to_owned(), value.into());
        self
    }

    pub fn without(mut self, field: &str) -> Self {
        self.0.remove(field);
        self
    }

    pub fn with_message_attribute(mut self, name: &str, value: Value) -> Self {
        self.0["messageAttributes"][name] = value;
        self
    }
}
