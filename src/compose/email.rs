//! An email, rendered and ready to be sent.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::claim::Row;
use crate::config::MailConfig;
use crate::emails::{Catalogue, FolderError};
use crate::mail::{Mailbox, encode_words, one_line, visible};
use crate::receive::Event;

use super::tags::tags;

/// What SES gets, but for what is the same in each email.
#[derive(Debug)]
pub struct Email {
    pub to: Mailbox,
    pub from: Mailbox,
    pub reply_to: Option<Mailbox>,
    pub subject: String,
    pub html: String,
    pub text: String,
    pub headers: Vec<(String, String)>,
    pub tags: Vec<(&'static str, String)>,
}

/// The folder can't render this event and row: it has to be fixed, and the event comes back.
#[derive(Debug, Error)]
pub enum ComposeError {
    #[error("Failed to render {0}")]
    Template(#[from] FolderError),
    #[error("emails/{0}/subject.txt rendered to nothing")]
    EmptySubject(String),
}

/// # Errors
/// A template uses what is neither in the event nor in the row.
pub fn compose(
    catalogue: &Catalogue,
    mail: &MailConfig,
    event: &Event<'_>,
    row: &Row,
    to: Mailbox,
) -> Result<Email, ComposeError> {
    let folder = event.folder;
    let mut values = values(event, row);
    let subject = one_line(&catalogue.render(folder, "subject.txt", &values)?);
    if subject.is_empty() {
        return Err(ComposeError::EmptySubject(folder.event_type().to_owned()));
    }
    values.insert("subject".into(), subject.as_str().into());
    let headers = folder
        .header_names()
        .map(|name| {
            let value = catalogue.render(folder, &format!("headers/{name}"), &values)?;
            Ok((
                name.to_owned(),
                encode_words(&one_line(&value)).into_owned(),
            ))
        })
        // SES refuses a header without a value.
        .filter(|header| !matches!(header, Ok((_, value)) if value.is_empty()))
        .collect::<Result<_, FolderError>>()?;
    Ok(Email {
        html: catalogue.render(folder, "body.html", &values)?,
        text: catalogue.render(folder, "body.txt", &values)?,
        from: folder.from().unwrap_or(&mail.from).clone(),
        reply_to: folder.reply_to().or(mail.reply_to.as_ref()).cloned(),
        tags: tags(event),
        to,
        subject,
        headers,
    })
}

/// The event's fields, optional ones that are absent as null, and the row's columns, all at the top level; the
/// row, which is the truth of the moment, wins. No text of theirs reaches beyond itself.
fn values(event: &Event<'_>, row: &Row) -> Map<String, Value> {
    let mut values = event.fields.clone();
    for (name, _) in event.folder.fields().iter() {
        values.entry(name).or_insert(Value::Null);
    }
    values.extend(row.clone());
    values.values_mut().for_each(keep_visible);
    values
}

fn keep_visible(value: &mut Value) {
    match value {
        Value::String(text) => *text = visible(text),
        Value::Array(values) => values.iter_mut().for_each(keep_visible),
        Value::Object(object) => object.values_mut().for_each(keep_visible),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
