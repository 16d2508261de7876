//! Each sample becomes an email that reads well.

use onemail::claim::Row;
use onemail::compose::Email;
use onemail::emails::FolderError;
use serde_json::{Map, Value};

use crate::report::assert_none;
use crate::stage::{Scene, Stage, jobboard};

/// RFC 5322, 2.1.1.
const MOST_BYTES_OF_A_LINE: usize = 998;

/// Name and value: <https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_MessageHeader.html>.
const MOST_BYTES_OF_A_HEADER: usize = 996;

/// What loads something from elsewhere, runs something, or tells somebody that an email was opened.
const UNWELCOME_IN_HTML: [&str; 7] = [
    "<script", "<img", "<link", "<iframe", "<form", "@import", "url(",
];

#[tokio::test]
async fn each_sample_becomes_an_email_with_and_without_its_optional_fields() {
    let (stage, jobboard) = (Stage::shipped(), jobboard().await);
    let scenes = stage.scenes(&jobboard).await;
    let problems: Vec<_> = scenes.iter().flatten().flat_map(wrong_emails).collect();
    jobboard.drop().await.unwrap();
    assert_none(&stage.source, &problems);
}

#[tokio::test]
async fn no_email_says_none_where_a_field_or_a_column_is_empty() {
    let (stage, jobboard) = (Stage::shipped(), jobboard().await);
    let scenes = stage.scenes(&jobboard).await;
    let problems: Vec<_> = scenes.iter().flatten().flat_map(printed_none).collect();
    jobboard.drop().await.unwrap();
    assert_none(&stage.source, &problems);
}

pub fn wrong_emails(scene: &Scene<'_>) -> Vec<FolderError> {
    // What isn't declared may be missing in the next event.
    let mut declared = scene.fields().clone();
    declared.retain(|name, _| name == "type" || scene.folder().fields().get(name).is_some());
    [declared, required(scene)]
        .into_iter()
        .flat_map(|fields| match scene.email_with(fields, &scene.row) {
            Ok(email) => wrong_content(scene, &email),
            Err(problem) => vec![problem],
        })
        .collect()
}

fn required(scene: &Scene<'_>) -> Map<String, Value> {
    let is_required = |name: &str| {
        scene
            .folder()
            .fields()
            .get(name)
            .is_some_and(|field| field.required)
    };
    let mut fields = scene.fields().clone();
    fields.retain(|name, _| name == "type" || is_required(name));
    fields
}

fn wrong_content(scene: &Scene<'_>, email: &Email) -> Vec<FolderError> {
    let mut problems = Vec::new();
    let mut wrong = |file: &str, problem: String| problems.push(scene.problem(file, problem));
    if email.subject.chars().any(char::is_control) {
        wrong("subject.txt", "the subject isn't one line".to_owned());
    }
    if email
        .text
        .lines()
        .any(|line| line.len() > MOST_BYTES_OF_A_LINE)
    {
        wrong(
            "body.txt",
            format!("a line is longer than {MOST_BYTES_OF_A_LINE} bytes"),
        );
    }
    if email.text.replace('\r', "").contains("\n\n\n\n") {
        wrong("body.txt", "three empty lines follow each other".to_owned());
    }
    let html = email.html.to_ascii_lowercase();
    for unwelcome in UNWELCOME_IN_HTML
        .into_iter()
        .filter(|unwelcome| html.contains(unwelcome))
    {
        wrong(
            "body.html",
            format!("`{unwelcome}` has no place in an email: see docs/emails.md"),
        );
    }
    for (name, value) in &email.headers {
        let printable = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !printable || name.len() + value.len() > MOST_BYTES_OF_A_HEADER {
            wrong(
                "email.toml",
                format!("SES would refuse the header `{name}`: it is too long, or not ASCII"),
            );
        }
    }
    problems
}

/// `NULL` and a field that is left out are printed as `None`, which nobody wants to read.
pub fn printed_none(scene: &Scene<'_>) -> Vec<FolderError> {
    let nothing = scene.email_with(required(scene), &scene.row);
    let empty = scene.email_with(with_empty_fields(scene), &with_empty_columns(scene));
    let (Ok(nothing), Ok(empty)) = (nothing, empty) else {
        return vec![]; // told by another test
    };
    let files = [
        ("subject.txt", nothing.subject, empty.subject),
        ("body.html", nothing.html, empty.html),
        ("body.txt", nothing.text, empty.text),
    ];
    let printed = files
        .into_iter()
        .filter(|(_, nothing, empty)| nones(nothing) > nones(empty));
    let problem = "prints `None` for what can be empty: ask first, as in `{% if name %}{{ name }}{% endif %}`";
    printed
        .map(|(file, ..)| scene.problem(file, problem))
        .collect()
}

fn nones(text: &str) -> usize {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| *word == "None").count()
}

fn with_empty_fields(scene: &Scene<'_>) -> Map<String, Value> {
    let mut fields = required(scene);
    for (name, _) in scene.folder().fields().iter() {
        fields.entry(name).or_insert_with(|| "".into());
    }
    fields
}

fn with_empty_columns(scene: &Scene<'_>) -> Row {
    let mut row = scene.row.clone();
    row.values_mut()
        .filter(|value| value.is_null())
        .for_each(|value| *value = "".into());
    row
}
