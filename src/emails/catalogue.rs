//! All folders, read once at start.

use std::collections::BTreeMap;

use include_dir::{Dir, include_dir};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::folder::{Folder, FolderError};
use super::manifest::Manifest;

static EMAILS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/emails");

/// A file below `emails/`: its path there, and its text.
pub type File<'a> = (&'a str, &'a str);

/// The folders by event type, and their templates.
pub struct Catalogue {
    folders: BTreeMap<String, Folder>,
    templates: Environment<'static>,
}

/// What each folder must hold, beside its samples and schema.
const FILES: [&str; 5] = [
    "email.toml",
    "recipient.sql",
    "subject.txt",
    "body.html",
    "body.txt",
];

impl Catalogue {
    /// # Errors
    /// Names the file and line of a broken folder; the tests refuse one long before it is deployed.
    pub fn compiled_in() -> Result<Self, FolderError> {
        let mut files = Vec::new();
        collect(&EMAILS, &mut files)?;
        Self::load(&files)
    }

    /// # Errors
    /// Names the file and line of the first thing that is wrong.
    pub fn load(files: &[File<'_>]) -> Result<Self, FolderError> {
        let mut templates = environment();
        let mut folders = BTreeMap::<&str, BTreeMap<&str, &str>>::new();
        for (path, text) in files {
            if path.ends_with(".html") || path.ends_with(".txt") {
                add_template(&mut templates, path, text)?;
            }
            if let Some((folder, file)) = path.split_once('/') {
                folders.entry(folder).or_default().insert(file, text);
            }
        }
        let folders = folders
            .into_iter()
            .map(|(name, files)| Ok((name.to_owned(), load_folder(&mut templates, name, &files)?)))
            .collect::<Result<_, _>>()?;
        Ok(Self { folders, templates })
    }

    pub fn folder(&self, event_type: &str) -> Option<&Folder> {
        self.folders.get(event_type)
    }

    pub fn folders(&self) -> impl Iterator<Item = &Folder> {
        self.folders.values()
    }

    /// Renders a file of a folder, or its `idempotency_key` or `headers/NAME`.
    ///
    /// # Errors
    /// Names the file and line; it never repeats a value.
    pub fn render(
        &self,
        folder: &Folder,
        file: &str,
        values: &impl Serialize,
    ) -> Result<String, FolderError> {
        let name = format!("{}/{file}", folder.event_type);
        self.templates
            .get_template(&name)
            .and_then(|template| template.render(Serde(values)))
            // Its detail can quote a value.
            .map_err(|error| {
                FolderError::new(error.name().unwrap_or(&name), error.line(), error.kind())
            })
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .expect("minijinja's own delimiters don't clash"),
    );
    // Its debug output would show values.
    environment.set_debug(false);
    environment.set_auto_escape_callback(|name| {
        if name.ends_with(".html") {
            AutoEscape::Html
        } else {
            AutoEscape::None
        }
    });
    environment
}

fn add_template(
    templates: &mut Environment<'static>,
    name: &str,
    source: &str,
) -> Result<(), FolderError> {
    templates
        .add_template_owned(name.to_owned(), source.to_owned())
        .map_err(|error| template_error(name, &error))
}

fn load_folder(
    templates: &mut Environment<'static>,
    name: &str,
    files: &BTreeMap<&str, &str>,
) -> Result<Folder, FolderError> {
    if !is_event_type(name) {
        return Err(FolderError::new(
            name,
            None,
            "an event type is 1 to 100 lower-case letters, digits, `_` and `.`",
        ));
    }
    for file in FILES {
        if files.get(file).is_none_or(|text| text.trim().is_empty()) {
            return Err(FolderError::new(
                format!("{name}/{file}"),
                None,
                "the file is missing or empty",
            ));
        }
    }
    let manifest_file = format!("{name}/email.toml");
    let manifest_text = files["email.toml"];
    let manifest = toml::from_str::<Manifest>(manifest_text).map_err(|error| {
        let line = error.span().map(|span| line_at(manifest_text, span.start));
        FolderError::new(manifest_file.as_str(), line, error.message())
    })?;
    let key = format!("{name}/idempotency_key");
    add_template(templates, &key, &manifest.idempotency_key)?;
    for (header, value) in &manifest.headers {
        add_template(templates, &format!("{name}/headers/{header}"), value)?;
    }
    let folder = Folder::from_manifest(name, manifest, files["recipient.sql"])?;
    check_key(templates, &key, &folder)?;
    Ok(folder)
}

/// A key that lacked a part would be the same for events that differ.
fn check_key(
    templates: &Environment<'static>,
    key: &str,
    folder: &Folder,
) -> Result<(), FolderError> {
    let file = format!("{}/email.toml", folder.event_type);
    let template = templates
        .get_template(key)
        .map_err(|error| template_error(key, &error))?;
    let variables = template.undeclared_variables(false);
    if variables.is_empty() {
        return Err(FolderError::new(
            file,
            None,
            "`idempotency_key` names no field: all events would share one key",
        ));
    }
    for variable in variables {
        if !folder
            .fields
            .get(&variable)
            .is_some_and(|field| field.required)
        {
            return Err(FolderError::new(
                file,
                None,
                format!("`idempotency_key` names `{variable}`, which is no required field"),
            ));
        }
    }
    Ok(())
}

/// An error of loading, when there are no values yet.
fn template_error(name: &str, error: &minijinja::Error) -> FolderError {
    FolderError::new(
        error.name().unwrap_or(name),
        error.line(),
        error.detail().map_or_else(
            || error.kind().to_string(),
            |detail| format!("{}: {detail}", error.kind()),
        ),
    )
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// `event_type` of the ledger holds 100 characters; `-` is kept free, since the tag of an email writes dots so.
pub(crate) fn is_event_type(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte))
}

fn collect<'a>(dir: &'a Dir<'a>, files: &mut Vec<File<'a>>) -> Result<(), FolderError> {
    for file in dir.files() {
        let path = file.path().to_str().unwrap_or_default();
        let text = file
            .contents_utf8()
            .ok_or_else(|| FolderError::new(path, None, "the file is not UTF-8"))?;
        files.push((path, text));
    }
    dir.dirs().try_for_each(|dir| collect(dir, files))
}
