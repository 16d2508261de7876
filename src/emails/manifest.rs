//! `email.toml`, as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::Fields;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    #[serde(default)]
    pub description: String,
    #[serde(default = "event_id")]
    pub idempotency_key: String,
    pub from: Option<String>,
    pub reply_to: Option<String>,
    pub fields: Fields,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub log: LogFields,
}

/// What of an event and of its row may stand in a log.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogFields {
    #[serde(default)]
    pub event: Vec<String>,
    #[serde(default)]
    pub row: Vec<String>,
}

fn event_id() -> String {
    "{{ event_id }}".to_owned()
}
