//! A sample goes the way of an event: it is parsed, looked up on the job board and rendered. What is left out is the
//! claim and SES.

use onemail::claim::Row;
use onemail::compose::{ComposeError, Destination, Email, Recipient, compose, destination};
use onemail::config::{MailConfig, RecipientPolicy};
use onemail::emails::{Catalogue, FieldProblem, FolderError};
use onemail::mail::Mailbox;
use onemail::receive::{Event, Malformed};

use crate::jobboard::Jobboard;
use crate::source::Sample;

pub fn event<'a>(
    catalogue: &'a Catalogue,
    event_type: &str,
    sample: Sample<'_>,
) -> Result<Event<'a>, FolderError> {
    let event = Event::parse(Some(sample.text), catalogue)
        .map_err(|problem| FolderError::new(sample.file, line(sample, &problem), &problem))?;
    if event.event_type() == event_type {
        return Ok(event);
    }
    Err(FolderError::new(
        sample.file,
        line_with(sample, "type"),
        format!(
            "its type is `{}`, but the folder is `{event_type}`",
            event.event_type()
        ),
    ))
}

/// The one row that `recipient.sql` must find.
pub async fn row(
    jobboard: &Jobboard,
    event: &Event<'_>,
    sample: Sample<'_>,
) -> Result<Row, FolderError> {
    let found = jobboard
        .rows(event)
        .await
        .map_err(|problem| with(sample, problem))?;
    match <[Row; 1]>::try_from(found) {
        Ok([row]) => Ok(row),
        Err(rows) if rows.is_empty() => Err(FolderError::new(
            sample.file,
            None,
            "recipient.sql found no row: the ids of a sample must be in local/jobboard.sql",
        )),
        Err(_) => Err(with(
            sample,
            FolderError::new(
                format!("{}/recipient.sql", event.event_type()),
                None,
                "more than one row was found, so it isn't clear whom to write to",
            ),
        )),
    }
}

pub fn email(
    catalogue: &Catalogue,
    event: &Event<'_>,
    row: &Row,
    sample: Sample<'_>,
) -> Result<Email, FolderError> {
    let folder = event.event_type();
    let recipient = Recipient::of_row(row).map_err(|problem| {
        with(
            sample,
            FolderError::new(format!("{folder}/recipient.sql"), None, problem),
        )
    })?;
    let to = match destination(recipient, &RecipientPolicy::Everyone) {
        Destination::Recipient(to) | Destination::Redirected(to) => to,
        Destination::Withheld => unreachable!("there is no list to be missing from"),
    };
    compose(catalogue, &mail(), event, row, to).map_err(|problem| match problem {
        ComposeError::Template(problem) => with(sample, problem),
        ComposeError::EmptySubject(_) => with(
            sample,
            FolderError::new(
                format!("{folder}/subject.txt"),
                None,
                "the subject is empty",
            ),
        ),
    })
}

fn mail() -> MailConfig {
    MailConfig {
        from: Mailbox::parse("Job Board <no-reply@example.com>").expect("a mailbox"),
        reply_to: None,
        configuration_set: None,
    }
}

/// The problem is in another file, and shows with this sample.
fn with(sample: Sample<'_>, mut problem: FolderError) -> FolderError {
    let name = sample
        .file
        .split_once('/')
        .map_or(sample.file, |(_, name)| name);
    problem.problem = format!("{} (with {name})", problem.problem);
    problem
}

fn line(sample: Sample<'_>, problem: &Malformed) -> Option<usize> {
    match problem {
        Malformed::NotJson { line, .. } => Some(*line),
        Malformed::Field(FieldProblem::Mismatch { field, .. }) => line_with(sample, field),
        Malformed::NoType | Malformed::UnknownType(_) => line_with(sample, "type"),
        _ => None,
    }
}

fn line_with(sample: Sample<'_>, field: &str) -> Option<usize> {
    let name = format!("\"{field}\"");
    let mut lines = sample.text.lines();
    lines
        .position(|line| line.contains(&name))
        .map(|index| index + 1)
}
