//! The payload of an invocation: a batch of SQS records.

use serde_json::Value;
use thiserror::Error;

use super::record::Record;

/// The records of one invocation, in their order.
#[derive(Debug)]
pub struct Batch {
    pub records: Vec<Record>,
}

/// The whole invocation fails with this: nothing in it could be acknowledged or reported.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NotAnSqsEvent {
    #[error("not an SQS event: the payload must be an object with a list `Records`")]
    NoRecords,
    #[error(
        "not an SQS event: its records come from `{0}`; connect the function to an SQS queue with an event source mapping"
    )]
    OtherSource(String),
}

impl Batch {
    /// Each record is read on its own, so that an odd one doesn't touch its neighbours.
    ///
    /// # Errors
    /// The payload is no SQS event.
    pub fn parse(payload: Value) -> Result<Self, NotAnSqsEvent> {
        let Value::Object(mut payload) = payload else {
            return Err(NotAnSqsEvent::NoRecords);
        };
        let Some(Value::Array(records)) = payload.remove("Records") else {
            return Err(NotAnSqsEvent::NoRecords);
        };
        for record in &records {
            // SNS and SES write it with a capital.
            let source = record
                .get("eventSource")
                .or_else(|| record.get("EventSource"))
                .and_then(Value::as_str);
            if let Some(source) = source.filter(|source| *source != "aws:sqs") {
                return Err(NotAnSqsEvent::OtherSource(
                    source.chars().take(64).collect(),
                ));
            }
        }
        Ok(Self {
            records: records.into_iter().map(Record::parse).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_sqs_event_is_refused() {
        for payload in [
            json!({}),
            json!({ "Records": null }),
            json!({ "records": [] }),
            json!([]),
            json!("Records"),
            json!(null),
        ] {
            assert_eq!(Batch::parse(payload).unwrap_err(), NotAnSqsEvent::NoRecords);
        }
        let sns = json!({ "Records": [{ "EventSource": "aws:sns", "Sns": {} }] });
        assert_eq!(
            Batch::parse(sns).unwrap_err(),
            NotAnSqsEvent::OtherSource("aws:sns".into())
        );
    }

    #[test]
    fn an_empty_batch_is_an_sqs_event() {
        assert!(
            Batch::parse(json!({ "Records": [] }))
                .unwrap()
                .records
                .is_empty()
        );
    }
}
