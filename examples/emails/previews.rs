//! Each sample as the email that it becomes, in `target/emails`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use onemail::claim::Row;
use onemail::compose::Email;
use onemail::emails::{Catalogue, FolderError};
use onemail::mail::Mailbox;
use serde_json::Value;

use crate::jobboard::Jobboard;
use crate::page::{self, Preview};
use crate::rehearsal;
use crate::source::{Sample, Source};

pub async fn write(source: &Source, catalogue: &Catalogue) -> anyhow::Result<()> {
    let jobboard = Jobboard::create().await?;
    let (previews, problems) = all(source, catalogue, &jobboard).await;
    jobboard.drop().await?;

    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/emails");
    let index = files(&target, &previews)
        .with_context(|| format!("Failed to write to {}", target.display()))?;
    println!("{} emails to look at: {}", previews.len(), index.display());
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

async fn all(
    source: &Source,
    catalogue: &Catalogue,
    jobboard: &Jobboard,
) -> (Vec<Preview>, Vec<String>) {
    let (mut previews, mut problems) = (Vec::new(), Vec::new());
    for folder in catalogue.folders() {
        for sample in source.samples(folder.event_type()) {
            match one(catalogue, jobboard, folder.event_type(), sample).await {
                Ok(preview) => previews.push(preview),
                Err(problem) => problems.push(source.explain(&problem)),
            }
        }
    }
    (previews, problems)
}

async fn one(
    catalogue: &Catalogue,
    jobboard: &Jobboard,
    event_type: &str,
    sample: Sample<'_>,
) -> Result<Preview, FolderError> {
    let event = rehearsal::event(catalogue, event_type, sample)?;
    let row = rehearsal::row(jobboard, &event, sample).await?;
    let email = rehearsal::email(catalogue, &event, &row, sample)?;
    let path = Path::new(sample.file);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Preview {
        event_type: event_type.to_owned(),
        name: name.into_owned(),
        key: event.key.to_string(),
        event: sample.text.to_owned(),
        from: email.from.header_value(),
        reply_to: email.reply_to.as_ref().map(Mailbox::header_value),
        to: to(&row, &email),
        row: format!("{:#}", Value::Object(row)),
        headers: email.headers,
        subject: email.subject,
        html: email.html,
        text: email.text,
    })
}

/// As a mail program shows it: its header has names in other scripts encoded.
fn to(row: &Row, email: &Email) -> String {
    let name = row
        .get("to_name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    format!("{name} <{}>", email.to.address().as_str())
}

/// Returns the page that shows them all.
fn files(target: &Path, previews: &[Preview]) -> anyhow::Result<PathBuf> {
    // Of samples that are gone.
    match fs::remove_dir_all(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(target)?,
    }
    for preview in previews {
        let folder = target.join(&preview.event_type);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("{}.html", preview.name)), &preview.html)?;
        fs::write(folder.join(format!("{}.txt", preview.name)), &preview.text)?;
    }
    let index = target.join("index.html");
    fs::write(&index, page::index(previews)?)?;
    Ok(index)
}
