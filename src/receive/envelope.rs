//! An event arrives bare, inside an SNS notification, or inside an EventBridge event.

use serde_json::{Map, Value};

use super::event::Malformed;

/// EventBridge to SNS to SQS is two envelopes; more are a mistake.
const MAX_ENVELOPES: usize = 3;

/// The object inside all envelopes.
pub(crate) fn open(body: &str) -> Result<Map<String, Value>, Malformed> {
    let mut object = parse(body)?;
    for _ in 0..MAX_ENVELOPES {
        object = if is_sns_notification(&object) {
            match object.get("Message") {
                Some(Value::String(message)) => parse(message)?,
                _ => return Err(Malformed::NotAnObject),
            }
        } else if is_eventbridge_event(&object) {
            match object.remove("detail") {
                Some(Value::Object(detail)) => detail,
                _ => return Err(Malformed::NotAnObject),
            }
        } else {
            return Ok(object);
        };
    }
    Ok(object)
}

fn parse(text: &str) -> Result<Map<String, Value>, Malformed> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Malformed::NotAnObject),
        Err(error) => Err(Malformed::NotJson {
            line: error.line(),
            column: error.column(),
        }),
    }
}

/// <https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html>
fn is_sns_notification(object: &Map<String, Value>) -> bool {
    object
        .get("Type")
        .is_some_and(|kind| kind == "Notification")
        && object.contains_key("Message")
}

/// <https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html>
fn is_eventbridge_event(object: &Map<String, Value>) -> bool {
    object.contains_key("detail-type") && object.contains_key("detail")
}
