//! One kind of email, proven complete.

use std::fmt;

use serde_json::{Map, Value};

use crate::mail::Mailbox;

use super::fields::Fields;
use super::manifest::Manifest;

/// A folder of `emails/`. Its templates live in the catalogue's environment, since they share layouts.
#[derive(Debug)]
pub struct Folder {
    pub(super) event_type: String,
    pub(super) description: String,
    pub(super) fields: Fields,
    pub(super) recipient_query: String,
    pub(super) from: Option<Mailbox>,
    pub(super) reply_to: Option<Mailbox>,
    pub(super) header_names: Vec<String>,
    pub(super) logged_event_fields: Vec<String>,
    pub(super) logged_columns: Vec<String>,
}

/// What is wrong with a folder, and where.
#[derive(Debug)]
pub struct FolderError {
    /// Relative to `emails/`.
    pub file: String,
    pub line: Option<usize>,
    pub problem: String,
}

impl FolderError {
    pub fn new(file: impl Into<String>, line: Option<usize>, problem: impl fmt::Display) -> Self {
        Self {
            file: file.into(),
            line,
            problem: problem.to_string(),
        }
    }
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "emails/{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for FolderError {}

impl Folder {
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The query for an event's recipient: `$1` is the event as `jsonb`, and the one column of each row is the
    /// folder's row as `jsonb`, so that columns of any type are read without asking Postgres what they are.
    /// Two rows are enough to see that there is more than one.
    pub fn recipient_query(&self) -> &str {
        &self.recipient_query
    }

    pub fn from(&self) -> Option<&Mailbox> {
        self.from.as_ref()
    }

    pub fn reply_to(&self) -> Option<&Mailbox> {
        self.reply_to.as_ref()
    }

    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.header_names.iter().map(String::as_str)
    }

    /// The fields of an event that the folder names as safe to log.
    pub fn safe_event_fields(&self, event: &Map<String, Value>) -> Map<String, Value> {
        pick(event, &self.logged_event_fields)
    }

    /// The columns of a row that the folder names as safe to log.
    pub fn safe_columns(&self, row: &Map<String, Value>) -> Map<String, Value> {
        pick(row, &self.logged_columns)
    }

    pub(super) fn from_manifest(
        event_type: &str,
        manifest: Manifest,
        recipient_sql: &str,
    ) -> Result<Self, FolderError> {
        let wrong =
            |problem: String| FolderError::new(format!("{event_type}/email.toml"), None, problem);
        let mailbox = |field: &str, text: Option<&String>| {
            text.map(|text| {
                Mailbox::parse(text).map_err(|problem| wrong(format!("`{field}`: {problem}")))
            })
            .transpose()
        };
        let from = mailbox("from", manifest.from.as_ref())?;
        let reply_to = mailbox("reply_to", manifest.reply_to.as_ref())?;
        if manifest.fields.get("type").is_some() {
            return Err(wrong("`type` is implied and can't be declared".into()));
        }
        for name in &manifest.log.event {
            if manifest.fields.get(name).is_none() {
                return Err(wrong(format!("[log] names `{name}`, which is no field")));
            }
        }
        for name in manifest.headers.keys() {
            check_header_name(name).map_err(|problem| wrong(format!("[headers] {problem}")))?;
        }
        Ok(Self {
            event_type: event_type.to_owned(),
            description: manifest.description,
            fields: manifest.fields,
            recipient_query: recipient_query(recipient_sql),
            from,
            reply_to,
            header_names: manifest.headers.into_keys().collect(),
            logged_event_fields: manifest.log.event,
            logged_columns: manifest.log.row,
        })
    }
}

/// On a line of its own, so that the query may end in a comment.
fn recipient_query(sql: &str) -> String {
    let sql = sql.trim_end().trim_end_matches(';');
    format!("SELECT to_jsonb(recipient) FROM (\n{sql}\n) AS recipient LIMIT 2")
}

fn pick(from: &Map<String, Value>, names: &[String]) -> Map<String, Value> {
    names
        .iter()
        .filter_map(|name| Some((name.clone(), from.get(name)?.clone())))
        .collect()
}

/// SES writes these itself, or takes them elsewhere in the request.
const RESERVED_HEADERS: [&str; 12] = [
    "bcc",
    "cc",
    "date",
    "dkim-signature",
    "from",
    "message-id",
    "mime-version",
    "reply-to",
    "return-path",
    "sender",
    "subject",
    "to",
];

fn check_header_name(name: &str) -> Result<(), String> {
    let visible = name
        .bytes()
        .all(|byte| (b'!'..=b'~').contains(&byte) && byte != b':');
    if name.is_empty() || name.len() > 126 || !visible {
        return Err(format!("`{name}` is no name of a header"));
    }
    let lower = name.to_ascii_lowercase();
    if RESERVED_HEADERS.contains(&lower.as_str()) || lower.starts_with("content-") {
        return Err(format!("`{name}` is set by SES or from elsewhere"));
    }
    Ok(())
}
