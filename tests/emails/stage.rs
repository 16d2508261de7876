//! The folders under test, with each of their samples as far as it gets without an email.

use onemail::claim::Row;
use onemail::compose::Email;
use onemail::emails::{Catalogue, Folder, FolderError};
use onemail::receive::Event;
use serde_json::{Map, Value};

use crate::jobboard::Jobboard;
use crate::rehearsal;
use crate::source::{Sample, Source};

pub struct Stage {
    pub source: Source,
    pub catalogue: Catalogue,
}

/// A sample that has found its recipient.
pub struct Scene<'a> {
    catalogue: &'a Catalogue,
    sample: Sample<'a>,
    event: Event<'a>,
    pub row: Row,
}

impl Stage {
    /// The folders of this repository.
    #[track_caller]
    pub fn shipped() -> Self {
        Self::of(Source::on_disk().unwrap_or_else(|problem| panic!("\n\n{problem}\n")))
    }

    #[track_caller]
    pub fn of(source: Source) -> Self {
        match source.catalogue() {
            Ok(catalogue) => Self { source, catalogue },
            Err(problem) => panic!("\n\n{}\n", source.explain(&problem)),
        }
    }

    pub fn samples(&self) -> impl Iterator<Item = (&Folder, Sample<'_>)> {
        let folders = self.catalogue.folders();
        folders.flat_map(|folder| {
            let samples = self.source.samples(folder.event_type());
            samples.map(move |sample| (folder, sample))
        })
    }

    /// Each sample, or why it has no recipient.
    pub async fn scenes(&self, jobboard: &Jobboard) -> Vec<Result<Scene<'_>, FolderError>> {
        let mut scenes = Vec::new();
        for (folder, sample) in self.samples() {
            scenes.push(self.scene(jobboard, folder, sample).await);
        }
        scenes
    }

    async fn scene<'a>(
        &'a self,
        jobboard: &Jobboard,
        folder: &Folder,
        sample: Sample<'a>,
    ) -> Result<Scene<'a>, FolderError> {
        let event = rehearsal::event(&self.catalogue, folder.event_type(), sample)?;
        let row = rehearsal::row(jobboard, &event, sample).await?;
        Ok(Scene {
            catalogue: &self.catalogue,
            sample,
            event,
            row,
        })
    }
}

impl<'a> Scene<'a> {
    pub fn folder(&self) -> &'a Folder {
        self.event.folder
    }

    pub fn fields(&self) -> &Map<String, Value> {
        &self.event.fields
    }

    /// The event with other values, which its folder would not have to admit.
    pub fn event_with(&self, fields: Map<String, Value>) -> Event<'a> {
        Event {
            folder: self.event.folder,
            key: self.event.key.clone(),
            payload_hash: self.event.payload_hash,
            payload_hash_before: self.event.payload_hash_before,
            fields,
        }
    }

    pub fn email(&self) -> Result<Email, FolderError> {
        self.email_with(self.fields().clone(), &self.row)
    }

    pub fn email_with(&self, fields: Map<String, Value>, row: &Row) -> Result<Email, FolderError> {
        rehearsal::email(self.catalogue, &self.event_with(fields), row, self.sample)
    }

    /// A problem of one of the folder's files.
    pub fn problem(&self, file: &str, problem: impl std::fmt::Display) -> FolderError {
        FolderError::new(
            format!("{}/{file}", self.folder().event_type()),
            None,
            problem,
        )
    }
}

pub async fn jobboard() -> Jobboard {
    let created = Jobboard::create().await;
    created.unwrap_or_else(|error| panic!("\n\n{error:#}\n"))
}
