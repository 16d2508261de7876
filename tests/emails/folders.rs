//! A folder has all its files, and no file whose purpose nobody knows.

use onemail::emails::{Folder, FolderError, event_schema};

use crate::report::assert_none;
use crate::source::Source;
use crate::stage::Stage;

const KNOWN: [&str; 6] = [
    "email.toml",
    "recipient.sql",
    "subject.txt",
    "body.html",
    "body.txt",
    "event.schema.json",
];

#[test]
fn each_folder_has_a_sample() {
    let stage = Stage::shipped();
    let folders = stage.catalogue.folders();
    let problems: Vec<_> = folders
        .filter_map(|folder| without_sample(&stage.source, folder))
        .collect();
    assert_none(&stage.source, &problems);
}

#[test]
fn no_file_is_there_that_nothing_uses() {
    let source = Stage::shipped().source;
    assert_none(&source, &unused_files(&source));
}

#[test]
fn each_schema_is_the_one_that_email_toml_gives() {
    let stage = Stage::shipped();
    let folders = stage.catalogue.folders();
    let problems: Vec<_> = folders
        .filter_map(|folder| stale_schema(&stage.source, folder))
        .collect();
    assert_none(&stage.source, &problems);
}

pub fn without_sample(source: &Source, folder: &Folder) -> Option<FolderError> {
    let samples = format!("{}/samples", folder.event_type());
    let problem = "there is no sample: add an event, in a file that ends in .json";
    let none = source.samples(folder.event_type()).next().is_none();
    none.then(|| FolderError::new(samples, None, problem))
}

/// A misspelt `samples/offer.jsn` would otherwise pass unseen.
pub fn unused_files(source: &Source) -> Vec<FolderError> {
    let unused = source.0.keys().filter(|path| {
        let template = path.ends_with(".html") || path.ends_with(".txt");
        let known = path.split_once('/').is_some_and(|(_, file)| {
            let sample = file
                .strip_prefix("samples/")
                .and_then(|name| name.strip_suffix(".json"));
            KNOWN.contains(&file) || sample.is_some_and(|name| !name.contains('/'))
        });
        !template && !known
    });
    let problem = "nothing uses this file: a folder has email.toml, recipient.sql, subject.txt, body.html, body.txt, \
                   event.schema.json, samples/*.json, and whatever other templates end in .html or .txt";
    unused
        .map(|path| FolderError::new(path.as_str(), None, problem))
        .collect()
}

pub fn stale_schema(source: &Source, folder: &Folder) -> Option<FolderError> {
    let file = format!("{}/event.schema.json", folder.event_type());
    let problem = match source.0.get(&file) {
        None => "the file is missing: run `make emails`, which writes it, and commit it",
        Some(text) if *text == format!("{:#}\n", event_schema(folder)) => return None,
        Some(_) => {
            "not what email.toml says now: run `make emails`, which writes the file anew, and commit it"
        }
    };
    Some(FolderError::new(file, None, problem))
}
