//! A message in somebody's hands.

use serde_json::json;

use crate::support::event::Record;

/// A message that was handed out.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub message_id: String,
    pub body: String,
    pub(super) receipt: Receipt,
}

/// Which entry, and which delivery of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Receipt {
    pub(super) entry: u64,
    pub(super) receive_count: u32,
}

impl Receipt {
    pub fn parse(handle: &str) -> Option<Self> {
        let (entry, receive_count) = handle.split_once(':')?;
        Some(Self {
            entry: entry.parse().ok()?,
            receive_count: receive_count.parse().ok()?,
        })
    }

    fn handle(self) -> String {
        format!("{}:{}", self.entry, self.receive_count)
    }
}

impl Delivery {
    pub fn receipt(&self) -> Receipt {
        self.receipt
    }

    /// As the event source mapping hands it over.
    pub fn record(&self, queue: &str) -> Record {
        Record::with_body(&self.message_id, &self.body)
            .with("receiptHandle", self.receipt.handle())
            .with(
                "eventSourceARN",
                format!("arn:aws:sqs:eu-west-1:123456789012:{queue}"),
            )
            .with(
                "attributes",
                json!({
                    "ApproximateReceiveCount": self.receipt.receive_count.to_string(),
                    "SentTimestamp": "1767268800000",
                    "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                    "ApproximateFirstReceiveTimestamp": "1767268800123",
                }),
            )
    }
}
