//! Whatever a person wrote into a name, the email shows it and doesn't obey it.

use onemail::claim::Row;
use onemail::compose::Email;
use onemail::emails::{FieldType, FolderError};
use serde_json::{Map, Value};

use crate::report::assert_none;
use crate::stage::{Scene, Stage, jobboard};

const HOSTILE: &str = "\"hostile'hostile<hostile>hostile&hostile;\r\nBcc: hostile@example.com";

/// Each character that means something in HTML, unescaped.
const MARKUP: [&str; 5] = ["\"hostile", "'hostile", "<hostile", "hostile>", "&hostile"];

#[tokio::test]
async fn no_value_becomes_markup_a_header_or_a_recipient() {
    let (stage, jobboard) = (Stage::shipped(), jobboard().await);
    let scenes = stage.scenes(&jobboard).await;
    let problems: Vec<_> = scenes.iter().flatten().flat_map(obeyed_values).collect();
    jobboard.drop().await.unwrap();
    assert_none(&stage.source, &problems);
}

/// One value at a time, since it can decide which part of a template is used.
pub fn obeyed_values(scene: &Scene<'_>) -> Vec<FolderError> {
    let places = places(scene).into_iter();
    places
        .flat_map(|place| {
            let (mut fields, mut row) = (scene.fields().clone(), scene.row.clone());
            place.poison(&mut fields, &mut row);
            match scene.email_with(fields, &row) {
                Ok(email) => obeyed(scene, &email, place.name()),
                // Not an email at all.
                Err(_) => vec![],
            }
        })
        .collect()
}

enum Place {
    Field(String),
    Column(String),
}

impl Place {
    fn poison(&self, fields: &mut Map<String, Value>, row: &mut Row) {
        match self {
            Self::Field(name) => fields.insert(name.clone(), HOSTILE.into()),
            Self::Column(name) => row.insert(name.clone(), HOSTILE.into()),
        };
    }

    fn name(&self) -> &str {
        match self {
            Self::Field(name) | Self::Column(name) => name,
        }
    }
}

/// The texts that somebody else decides about.
fn places(scene: &Scene<'_>) -> Vec<Place> {
    let fields = scene.folder().fields().iter();
    let texts = fields.filter(|(_, field)| {
        matches!(
            field.kind,
            FieldType::Key | FieldType::String { one_of: None, .. }
        )
    });
    let columns = scene.row.iter();
    let columns = columns.filter(|(name, value)| value.is_string() && *name != "to_address");
    texts
        .map(|(name, _)| Place::Field(name.to_owned()))
        .chain(columns.map(|(name, _)| Place::Column(name.clone())))
        .collect()
}

fn obeyed(scene: &Scene<'_>, email: &Email, name: &str) -> Vec<FolderError> {
    let mut problems = Vec::new();
    let html = email.html.to_ascii_lowercase();
    if MARKUP.iter().any(|markup| html.contains(markup)) {
        problems.push(scene.problem(
            "body.html",
            format!("`{name}` becomes markup: is there a `|safe`, or an included .txt?"),
        ));
    }
    if email.text.to_ascii_lowercase().contains("&lt;hostile") {
        let problem = format!("`{name}` is escaped, though in a text nothing is markup");
        problems.push(scene.problem("body.txt", problem));
    }
    let to = email.to.header_value();
    let values = email.headers.iter().map(|(_, value)| value);
    if values
        .chain([&email.subject, &to])
        .any(|line| line.contains(['\r', '\n']))
    {
        problems.push(scene.problem(
            "email.toml",
            format!("`{name}` breaks the line of a header"),
        ));
    }
    problems
}
