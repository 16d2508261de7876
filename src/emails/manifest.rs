//! `email.toml`, as it is written.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::fields::Fields;
use super::folder::FolderError;

/// Values that can turn out wrong later remember where they stand.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    #[serde(default)]
    pub description: String,
    #[serde(default = "event_id")]
    pub idempotency_key: Spanned<String>,
    pub from: Option<Spanned<String>>,
    pub reply_to: Option<Spanned<String>>,
    pub fields: Fields,
    #[serde(default)]
    pub headers: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub log: LogFields,
}

/// What of an event and of its row may stand in a log.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogFields {
    #[serde(default)]
    pub event: Vec<Spanned<String>>,
    #[serde(default)]
    pub row: Vec<Spanned<String>>,
}

impl Manifest {
    /// The values that are templates, by the names under which the catalogue knows them.
    pub fn value_templates(&self, event_type: &str) -> Vec<(String, Spanned<String>)> {
        let key = format!("{event_type}/idempotency_key");
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| (format!("{event_type}/headers/{name}"), value.clone()));
        std::iter::once((key, self.idempotency_key.clone()))
            .chain(headers)
            .collect()
    }
}

/// The default stands nowhere.
fn event_id() -> Spanned<String> {
    Spanned::new(0..0, "{{ event_id }}".to_owned())
}

/// The file that a manifest is read from.
pub(super) struct ManifestFile<'a> {
    name: String,
    text: &'a str,
}

impl<'a> ManifestFile<'a> {
    pub fn of_folder(event_type: &str, text: &'a str) -> Self {
        Self {
            name: format!("{event_type}/email.toml"),
            text,
        }
    }

    pub fn read(&self) -> Result<Manifest, FolderError> {
        toml::from_str(self.text).map_err(|error: toml::de::Error| {
            let line = error.span().map(|span| self.line_at(span.start));
            FolderError::new(self.name.as_str(), line, error.message())
        })
    }

    pub fn error(&self, problem: impl fmt::Display) -> FolderError {
        FolderError::new(self.name.as_str(), None, problem)
    }

    pub fn error_at(&self, span: Range<usize>, problem: impl fmt::Display) -> FolderError {
        FolderError::new(self.name.as_str(), self.line(span), problem)
    }

    /// The line of a value; none for a default, whose span is empty.
    pub fn line(&self, span: Range<usize>) -> Option<usize> {
        (!span.is_empty()).then(|| self.line_at(span.start))
    }

    fn line_at(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}
