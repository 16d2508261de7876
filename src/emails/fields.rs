//! The fields that an event must have.
//!
//! A validator of JSON Schema would add 3.8 MB to the binary, so the check is this small one; the schema that
//! producers use is generated from the same declaration, and a test compares the two.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::declaration::Declaration;

/// An event's fields by name, `type` left out: each event has it.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Fields(BTreeMap<String, Field>);

#[derive(Debug, Deserialize)]
#[serde(try_from = "Declaration")]
pub struct Field {
    /// An optional field may also be null.
    pub required: bool,
    pub kind: FieldType,
}

#[derive(Debug)]
pub enum FieldType {
    /// 1 to 64 visible ASCII characters, as an idempotency key has.
    Key,
    /// Lengths in characters.
    String {
        min_length: u64,
        max_length: Option<u64>,
        one_of: Option<Vec<String>>,
    },
    /// 64 bits, as Postgres's `bigint`.
    Integer {
        minimum: i64,
        maximum: i64,
    },
    Number {
        minimum: Option<f64>,
        maximum: Option<f64>,
    },
    Boolean,
}

/// What is wrong with an event's field; it never repeats the value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldProblem {
    #[error("the field `{0}` is missing")]
    Missing(String),
    #[error("the field `{field}` must be {expected}")]
    Mismatch { field: String, expected: String },
}

impl Fields {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.0.iter().map(|(name, field)| (name.as_str(), field))
    }

    pub fn get(&self, name: &str) -> Option<&Field> {
        self.0.get(name)
    }

    /// # Errors
    /// The first field, by name, that is missing or doesn't fit.
    pub fn check(&self, event: &Map<String, Value>) -> Result<(), FieldProblem> {
        for (name, field) in &self.0 {
            match event.get(name) {
                None if field.required => return Err(FieldProblem::Missing(name.clone())),
                None => {}
                Some(Value::Null) if !field.required => {}
                Some(value) if field.kind.admits(value) => {}
                Some(_) => {
                    return Err(FieldProblem::Mismatch {
                        field: name.clone(),
                        expected: field.kind.description(),
                    });
                }
            }
        }
        Ok(())
    }
}

impl FieldType {
    fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Key, Value::String(text)) => is_key(text),
            (
                Self::String {
                    min_length,
                    max_length,
                    one_of,
                },
                Value::String(text),
            ) => {
                let length = text.chars().count() as u64;
                length >= *min_length
                    && max_length.is_none_or(|most| length <= most)
                    && one_of.as_ref().is_none_or(|values| values.contains(text))
            }
            (Self::Integer { minimum, maximum }, Value::Number(number)) => number
                .as_i64()
                .is_some_and(|number| (*minimum..=*maximum).contains(&number)),
            (Self::Number { minimum, maximum }, Value::Number(number)) => {
                number.as_f64().is_some_and(|number| {
                    minimum.is_none_or(|least| number >= least)
                        && maximum.is_none_or(|most| number <= most)
                })
            }
            (Self::Boolean, Value::Bool(_)) => true,
            _ => false,
        }
    }

    /// Whether the bounds leave no value at all.
    pub(super) fn admits_nothing(&self) -> bool {
        match self {
            Self::String {
                min_length,
                max_length,
                one_of,
            } => {
                let fits = |text: &String| self.admits(&Value::from(text.as_str()));
                max_length.is_some_and(|most| most < *min_length)
                    || one_of
                        .as_ref()
                        .is_some_and(|values| !values.iter().any(fits))
            }
            Self::Integer { minimum, maximum } => minimum > maximum,
            Self::Number {
                minimum: Some(minimum),
                maximum: Some(maximum),
            } => minimum > maximum,
            Self::Number { .. } | Self::Key | Self::Boolean => false,
        }
    }

    fn description(&self) -> String {
        match self {
            Self::Key => "a string of 1 to 64 visible ASCII characters".to_owned(),
            Self::String {
                one_of: Some(values),
                ..
            } => format!("one of {}", values.join(", ")),
            Self::String {
                min_length,
                max_length: Some(max_length),
                ..
            } => format!("a string of {min_length} to {max_length} characters"),
            Self::String { min_length, .. } => {
                format!("a string of at least {min_length} characters")
            }
            Self::Integer { minimum, maximum } => {
                format!("a whole number from {minimum} to {maximum}")
            }
            Self::Number { .. } => "a number within its bounds".to_owned(),
            Self::Boolean => "true or false".to_owned(),
        }
    }
}

pub(crate) fn is_key(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| (b'!'..=b'~').contains(&byte))
}
