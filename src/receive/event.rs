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
    pub payload_hash: PayloadHash,
}

/// Why a message is no event that could ever be sent. It never repeats a value.
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
        Ok(Self {
            folder,
            key,
            payload_hash: payload::hash(&fields),
            fields,
        })
    }

    pub fn event_type(&self) -> &'a str {
        self.folder.event_type()
    }
}
