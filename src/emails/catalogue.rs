//! All folders, read once at start.

use std::collections::{BTreeMap, HashSet};
use std::error::Error as _;

use include_dir::{Dir, include_dir};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::folder::{Folder, FolderError};
use super::manifest::ManifestFile;

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
            .map_err(|error| {
                let error = innermost(&error);
                // Its detail can quote a value.
                folder.error_in_template(error.name().unwrap_or(&name), error.line(), error.kind())
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
    #[cfg(test)]
    environment.add_filter("panic_if_asked", |value: String| {
        assert_ne!(value, "panic", "as asked");
        value
    });
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
    let manifest_file = ManifestFile::of_folder(name, files["email.toml"]);
    let manifest = manifest_file.read()?;
    let values = manifest.value_templates(name);
    let mut folder = Folder::new(name, &manifest_file, manifest, files["recipient.sql"])?;
    for (name, source) in values {
        add_template(templates, &name, source.as_ref())
            .map_err(|error| folder.error_in_template(&error.file, error.line, error.problem))?;
    }
    folder.derives_key = !check_key(templates, &folder)?.contains("event_id");
    Ok(folder)
}

/// A key that lacked a part would be the same for events that differ. Returns the fields that it is made of.
fn check_key(
    templates: &Environment<'static>,
    folder: &Folder,
) -> Result<HashSet<String>, FolderError> {
    let key = format!("{}/idempotency_key", folder.event_type);
    let wrong = |problem: String| folder.error_in_template(&key, Some(1), problem);
    let template = templates
        .get_template(&key)
        .map_err(|error| template_error(&key, &error))?;
    let variables = template.undeclared_variables(false);
    if variables.is_empty() {
        return Err(wrong(
            "`idempotency_key` names no field: all events would share one key".into(),
        ));
    }
    for variable in &variables {
        let is_required = folder.fields.get(variable).map(|field| field.required);
        if is_required != Some(true) {
            let what = if is_required.is_some() {
                "an optional field"
            } else {
                "no field"
            };
            return Err(wrong(format!(
                "`idempotency_key` names `{variable}`, which is {what} in [fields]; it needs required ones"
            )));
        }
    }
    Ok(variables)
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

/// The error of an included template, or of a parent's block, is the source of one that only says where it was
/// included.
fn innermost(error: &minijinja::Error) -> &minijinja::Error {
    let mut innermost = error;
    while let Some(source) = innermost
        .source()
        .and_then(|source| source.downcast_ref::<minijinja::Error>())
        .filter(|source| source.name().is_some())
    {
        innermost = source;
    }
    innermost
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
        // What a desktop leaves behind, such as `.DS_Store`.
        if path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with('.'))
        {
            continue;
        }
        let text = file
            .contents_utf8()
            .ok_or_else(|| FolderError::new(path, None, "the file is not UTF-8"))?;
        files.push((path, text));
    }
    dir.dirs().try_for_each(|dir| collect(dir, files))
}
