//! The files of `emails/` as they are on disk now, and how to tell somebody what is wrong with one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use onemail::emails::{Catalogue, FolderError};

/// Files by their path below `emails/`, with `/` between its parts.
pub struct Source(pub BTreeMap<String, String>);

/// An event that a folder keeps for tests and previews.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source {
    pub fn on_disk() -> Result<Self, FolderError> {
        let mut files = BTreeMap::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("emails");
        collect(&root, &root, &mut files)?;
        Ok(Self(files))
    }

    pub fn catalogue(&self) -> Result<Catalogue, FolderError> {
        let files = self.0.iter();
        let files: Vec<_> = files
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        Catalogue::load(&files)
    }

    pub fn samples(&self, event_type: &str) -> impl Iterator<Item = Sample<'_>> {
        let folder = format!("{event_type}/samples/");
        let files = self.0.iter();
        files
            .filter(move |(path, _)| path.starts_with(&folder) && path.ends_with(".json"))
            .map(|(file, text)| Sample { file, text })
    }

    /// The problem, and the line that it is about.
    pub fn explain(&self, problem: &FolderError) -> String {
        let file = self.0.get(&problem.file);
        let line = problem
            .line
            .and_then(|line| file?.lines().nth(line.checked_sub(1)?));
        match line {
            Some(line) => format!("{problem}\n    {}", line.trim()),
            None => problem.to_string(),
        }
    }
}

fn collect(
    root: &Path,
    directory: &Path,
    files: &mut BTreeMap<String, String>,
) -> Result<(), FolderError> {
    let name_of = |path: &Path| {
        let parts = path.strip_prefix(root).unwrap_or(path).iter();
        let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
        parts.join("/")
    };
    let wrong = |path: &Path, error| FolderError::new(name_of(path), None, error);
    let entries = fs::read_dir(directory).map_err(|error| wrong(directory, error))?;
    for entry in entries {
        let path = entry.map_err(|error| wrong(directory, error))?.path();
        // Left out of the binary too.
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            let text = fs::read_to_string(&path).map_err(|error| wrong(&path, error))?;
            files.insert(name_of(&path), text);
        }
    }
    Ok(())
}
