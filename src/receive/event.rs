//! A business event, proven valid: it can be claimed.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::emails::{Catalogue, FieldProblem, Folder, is_event_type};

use super::envelope;
use super::key::IdempotencyKey;
use super::payload::{self, PayloadHash};

/// An event of a known type that has all its fields, and its key.
#[derive(Debug)]
pub struct Event<'a> {
    pub folder: &'a Folder,
    pub key: IdempotencyKey,
    /// The whole event, with its numbers normalized.
    pub fields: Map<String, Value>,
    /// Of what makes another payload under the same key.
    pub payload_hash: PayloadHash,
    /// What the version before took for it, where that differs: a row of that version is of this event too.
    pub payload_hash_before: Option<PayloadHash>,
}

/// Why a message is not an event that could ever be sent. It never repeats a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    #[error("the message has no body")]
    NoBody,
    #[error("the body is not JSON (line {line}, column {column})")]
    NotJson { line: usize, column: usize },
    #[error("the event is not a JSON object")]
    NotAnObject,
    #[error("a string of the event has a NUL character, which Postgres does not take")]
    Nul,
    #[error("the field `type` must be a string of lower-case letters, digits, `_` and `.`")]
    NoType,
    #[error("there is no email for events of type `{0}`")]
    UnknownType(String),
    #[error("{0}")]
    Field(#[from] FieldProblem),
    #[error("the idempotency key must be 1 to 64 visible ASCII characters")]
    Key,
}

impl<'a> Event<'a> {
    /// # Errors
    /// What is wrong with the event; no later try could cure it.
    pub fn parse(body: Option<&str>, catalogue: &'a Catalogue) -> Result<Self, Malformed> {
        let object = envelope::open(body.ok_or(Malformed::NoBody)?)?;
        let mut event = Value::Object(object);
        if payload::has_nul(&event) {
            return Err(Malformed::Nul);
        }
        payload::normalize(&mut event);
        let Value::Object(fields) = event else {
            return Err(Malformed::NotAnObject);
        };
        let event_type = fields
            .get("type")
            .and_then(Value::as_str)
            .filter(|name| is_event_type(name))
            .ok_or(Malformed::NoType)?;
        let folder = catalogue
            .folder(event_type)
            .ok_or_else(|| Malformed::UnknownType(event_type.to_owned()))?;
        folder.fields().check(&fields)?;
        let key = catalogue
            .render(folder, "idempotency_key", &fields)
            .ok()
            .and_then(|text| IdempotencyKey::parse(&text))
            .ok_or(Malformed::Key)?;
        let whole = payload::hash(&fields);
        let payload_hash = if folder.derives_key() {
            payload::hash(&declared(folder, &fields))
        } else {
            whole
        };
        Ok(Self {
            folder,
            key,
            payload_hash,
            payload_hash_before: (whole != payload_hash).then_some(whole),
            fields,
        })
    }

    pub fn event_type(&self) -> &'a str {
        self.folder.event_type()
    }
}

/// What the email is about, where its key is derived: two messages that tell of one order at different times are one
/// event. An optional field that is null is as good as absent.
fn declared(folder: &Folder, event: &Map<String, Value>) -> Map<String, Value> {
    event
        .iter()
        .filter(|(name, value)| {
            *name == "type" || (folder.fields().get(name).is_some() && !value.is_null())
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DERIVED: &str = r#"
        idempotency_key = "order-{{ order_id }}"
        [fields]
        order_id = { type = "integer" }
        note = { type = "string", required = false }
    "#;
    const BY_EVENT_ID: &str = r#"
        [fields]
        event_id = { type = "key" }
    "#;

    fn hashes(manifest: &str, event: &Value) -> (PayloadHash, Option<PayloadHash>) {
        let mut event = event.clone();
        event["type"] = json!("a");
        let files = [
            ("a/email.toml", manifest),
            ("a/recipient.sql", "SELECT 'a@b.example' AS to_address"),
            ("a/subject.txt", "a"),
            ("a/body.txt", "a"),
            ("a/body.html", "a"),
        ];
        let catalogue = Catalogue::load(&files).unwrap();
        let event = Event::parse(Some(&event.to_string()), &catalogue).unwrap();
        (event.payload_hash, event.payload_hash_before)
    }

    #[test]
    fn under_a_derived_key_only_declared_fields_make_another_payload() {
        let (hash, before) = hashes(DERIVED, &json!({ "order_id": 1 }));
        assert_eq!(before, None);
        for same in [
            json!({ "order_id": 1, "timestamp": "2026-12-04T00:00:00Z" }),
            json!({ "order_id": 1, "event_id": "e-2", "nested": { "a": [1] } }),
            json!({ "order_id": 1, "note": null }),
            json!({ "order_id": 1.0 }),
        ] {
            assert_eq!(hashes(DERIVED, &same).0, hash, "{same}");
        }
        assert_ne!(hashes(DERIVED, &json!({ "order_id": 2 })).0, hash);
        assert_ne!(
            hashes(DERIVED, &json!({ "order_id": 1, "note": "n" })).0,
            hash
        );
    }

    #[test]
    fn the_hash_of_the_version_before_is_known_where_it_differs() {
        let event = json!({ "order_id": 1, "timestamp": "t" });
        let mut whole = event.clone();
        whole["type"] = json!("a");
        let (_, before) = hashes(DERIVED, &event);
        assert_eq!(before, Some(payload::hash(whole.as_object().unwrap())));
    }

    #[test]
    fn under_an_event_id_any_field_makes_another_payload() {
        let (hash, before) = hashes(BY_EVENT_ID, &json!({ "event_id": "e-1" }));
        let other = hashes(BY_EVENT_ID, &json!({ "event_id": "e-1", "timestamp": "t" }));
        assert_ne!(other.0, hash);
        assert_eq!((before, other.1), (None, None));
    }
}
