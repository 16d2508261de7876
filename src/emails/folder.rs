//! One kind of email, proven complete.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use toml::Spanned;

use crate::mail::Mailbox;

use super::fields::Fields;
use super::manifest::{Manifest, ManifestFile};

/// A folder of `emails/`. Its templates live in the catalogue's environment, since they share layouts.
#[derive(Debug)]
pub struct Folder {
    pub(super) event_type: String,
    pub(super) description: String,
    pub(super) fields: Fields,
    pub(super) derives_key: bool,
    pub(super) recipient_query: String,
    pub(super) from: Option<Mailbox>,
    pub(super) reply_to: Option<Mailbox>,
    pub(super) header_names: Vec<String>,
    pub(super) logged_event_fields: Vec<String>,
    pub(super) logged_columns: Vec<String>,
    /// Where `email.toml` has the templates that are values of it; none where it leaves a default.
    value_lines: BTreeMap<String, Option<usize>>,
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

    /// Whether the key is made of fields that tell what the email is about, and not of `event_id`.
    pub fn derives_key(&self) -> bool {
        self.derives_key
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

    /// The columns that the folder names as safe to log.
    pub fn logged_columns(&self) -> impl Iterator<Item = &str> {
        self.logged_columns.iter().map(String::as_str)
    }

    pub(super) fn new(
        event_type: &str,
        file: &ManifestFile<'_>,
        manifest: Manifest,
        recipient_sql: &str,
    ) -> Result<Self, FolderError> {
        check_names(file, &manifest)?;
        let value_lines = manifest
            .value_templates(event_type)
            .into_iter()
            .map(|(name, value)| (name, file.line(value.span())))
            .collect();
        let logged_event_fields = manifest.log.event.into_iter();
        let logged_columns = manifest.log.row.into_iter();
        Ok(Self {
            event_type: event_type.to_owned(),
            description: manifest.description,
            fields: manifest.fields,
            derives_key: false,
            recipient_query: recipient_query(recipient_sql),
            from: mailbox(file, "from", manifest.from.as_ref())?,
            reply_to: mailbox(file, "reply_to", manifest.reply_to.as_ref())?,
            header_names: manifest.headers.into_keys().collect(),
            logged_event_fields: logged_event_fields.map(Spanned::into_inner).collect(),
            logged_columns: logged_columns.map(Spanned::into_inner).collect(),
            value_lines,
        })
    }

    /// An error in one of the folder's templates, or in one that they share.
    pub(super) fn error_in_template(
        &self,
        template: &str,
        line: Option<usize>,
        problem: impl fmt::Display,
    ) -> FolderError {
        let Some(first) = self.value_lines.get(template) else {
            return FolderError::new(template, line, problem);
        };
        let line = first.map(|first| first + line.unwrap_or(1) - 1);
        FolderError::new(format!("{}/email.toml", self.event_type), line, problem)
    }
}

fn mailbox(
    file: &ManifestFile<'_>,
    name: &str,
    text: Option<&Spanned<String>>,
) -> Result<Option<Mailbox>, FolderError> {
    text.map(|text| {
        Mailbox::parse(text.as_ref())
            .map_err(|problem| file.error_at(text.span(), format!("`{name}`: {problem}")))
    })
    .transpose()
}

/// Columns of the recipient's own.
const NEVER_LOGGED: [&str; 2] = ["to_address", "to_name"];

fn check_names(file: &ManifestFile<'_>, manifest: &Manifest) -> Result<(), FolderError> {
    for (name, meaning) in RESERVED_FIELDS {
        if manifest.fields.get(name).is_some() {
            return Err(file.error(format!("[fields] can't declare `{name}`: {meaning}")));
        }
    }
    for name in &manifest.log.event {
        if manifest.fields.get(name.as_ref()).is_none() {
            let problem = format!("[log] names `{}`, which is no field", name.as_ref());
            return Err(file.error_at(name.span(), problem));
        }
    }
    for name in &manifest.log.row {
        if NEVER_LOGGED.contains(&name.as_ref().as_str()) {
            let problem = format!("[log] names `{}`, which is never logged", name.as_ref());
            return Err(file.error_at(name.span(), problem));
        }
    }
    for (name, value) in &manifest.headers {
        check_header_name(name)
            .map_err(|problem| file.error_at(value.span(), format!("[headers] {problem}")))?;
    }
    if manifest.headers.len() > MOST_HEADERS {
        return Err(file.error(format!("[headers] has more than SES's {MOST_HEADERS}")));
    }
    Ok(())
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

/// Fields that templates could not see.
const RESERVED_FIELDS: [(&str, &str); 2] = [
    ("type", "each event has it"),
    ("subject", "in templates it is the finished subject"),
];

/// <https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_Message.html>
const MOST_HEADERS: usize = 15;

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
