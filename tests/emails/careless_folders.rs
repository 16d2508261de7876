//! A folder that would work, and annoy or mislead somebody, is refused too.

use onemail::emails::FolderError;

use crate::content::{printed_none, wrong_emails};
use crate::folders::{stale_schema, unused_files, without_sample};
use crate::hostile_values::obeyed_values;
use crate::recipients::{numbers_too_much, wrong_columns};
use crate::source::Source;
use crate::specimen::{sound, with};
use crate::stage::{Scene, Stage, jobboard};

/// What a check says of the sample of each source.
async fn said(
    sources: impl IntoIterator<Item = Source>,
    check: impl Fn(&Scene<'_>) -> Vec<FolderError>,
) -> Vec<String> {
    let jobboard = jobboard().await;
    let mut said = Vec::new();
    for source in sources {
        let stage = Stage::of(source);
        for scene in stage.scenes(&jobboard).await {
            let scene =
                scene.unwrap_or_else(|problem| panic!("{}", stage.source.explain(&problem)));
            said.extend(
                check(&scene)
                    .iter()
                    .map(|problem| stage.source.explain(problem)),
            );
        }
    }
    jobboard.drop().await.expect("a database can be dropped");
    said.dedup();
    said
}

#[tokio::test]
async fn a_folder_without_a_fault_is_not_told_of_any() {
    let checks = |scene: &Scene<'_>| {
        let said = [
            wrong_columns(scene),
            wrong_emails(scene),
            printed_none(scene),
            obeyed_values(scene),
        ];
        said.into_iter().flatten().collect()
    };
    assert_eq!(said([sound()], checks).await, Vec::<String>::new());
}

#[tokio::test]
async fn columns_that_templates_or_logs_could_not_use_are_named() {
    let sources = [
        ("u.first_name AS to_name", "NULL AS to_name"),
        ("u.first_name AS to_name", "7 AS to_name"),
        ("u.first_name AS to_name", "1"),
        (
            "u.first_name AS to_name",
            "u.first_name AS to_name, 'x' AS user_id, 'y' AS subject",
        ),
    ];
    let sources = sources
        .into_iter()
        .map(|(old, new)| with("recipient.sql", old, new));
    let logged = with("email.toml", "[log]", "[log]\nrow = [\"uesr\"]");
    assert_eq!(
        said(sources.chain([logged]), wrong_columns).await,
        [
            "emails/user.told/recipient.sql: the column `to_name` is NULL: use coalesce(..., '')",
            "emails/user.told/recipient.sql: the column `to_name` must be text",
            "emails/user.told/recipient.sql: there is no column `to_name`",
            "emails/user.told/recipient.sql: a column has no name: give it one with AS",
            "emails/user.told/recipient.sql: the column `subject` hides what templates know by that name already: \
             name it otherwise",
            "emails/user.told/recipient.sql: the column `user_id` hides what templates know by that name already: \
             name it otherwise",
            "emails/user.told/recipient.sql: there is no column `uesr`, which [log] of email.toml names",
        ]
    );
}

#[tokio::test]
async fn a_cast_that_is_too_small_for_its_field_is_found() {
    let stage = Stage::of(with("recipient.sql", "bigint", "int"));
    let jobboard = jobboard().await;
    let scenes = stage.scenes(&jobboard).await;
    let problems = numbers_too_much(
        scenes[0]
            .as_ref()
            .unwrap_or_else(|problem| panic!("{problem}")),
        &jobboard,
    )
    .await;
    jobboard.drop().await.unwrap();
    assert_eq!(
        problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "emails/user.told/recipient.sql: integer out of range where `user_id` is 9223372036854775807: \
          bound the field in email.toml, or cast to bigint"
        ]
    );
}

#[tokio::test]
async fn markup_from_a_value_is_found() {
    let safe = with("body.html", "{{ to_name }}", "{{ to_name|safe }}");
    let mut included = with(
        "body.html",
        "{{ to_name }}",
        "{% include 'user.told/name.txt' %}",
    );
    included
        .0
        .insert("user.told/name.txt".into(), "{{ to_name }}".into());
    let escaped = with("body.txt", "{{ to_name }}", "{{ to_name|escape }}");
    assert_eq!(
        said([safe, included, escaped], obeyed_values).await,
        [
            "emails/user.told/body.html: `to_name` becomes markup: is there a `|safe`, or an included .txt?",
            "emails/user.told/body.txt: `to_name` is escaped, though in a text nothing is markup",
        ]
    );
}

#[tokio::test]
async fn an_email_that_reads_badly_is_found() {
    let long = "word ".repeat(200);
    let sources = [
        with("body.txt", "Hello", &long),
        with("body.txt", "Hello", "Hello\n\n\n\n"),
        with(
            "body.html",
            "Hello",
            "<IMG src='https://example.com/pixel'>",
        ),
        with("email.toml", "auto-generated", &long),
        with("body.txt", "Hello", "{{ undeclared }}"),
        with("body.txt", "Hello", "{{ note.x }}"),
    ];
    let undeclared = |mut source: Source| {
        let sample = source.0.get_mut("user.told/samples/sam.json").unwrap();
        *sample = sample.replace("\"user_id\"", "\"undeclared\": 1, \"user_id\"");
        source
    };
    assert_eq!(
        said(sources.into_iter().map(undeclared), wrong_emails).await,
        [
            "emails/user.told/body.txt: a line is longer than 998 bytes",
            "emails/user.told/body.txt: three empty lines follow each other",
            "emails/user.told/body.html: `<img` has no place in an email: see docs/emails.md",
            "emails/user.told/email.toml: SES would refuse the header `Auto-Submitted`: it is too long, or not ASCII",
            "emails/user.told/body.txt:1: undefined value (with samples/sam.json)\n    {{ undeclared }} {{ to_name }}",
            "emails/user.told/body.txt:1: undefined value (with samples/sam.json)\n    {{ note.x }} {{ to_name }}",
        ]
    );
}

#[tokio::test]
async fn a_none_that_a_reader_would_see_is_found() {
    let field = with("body.html", "Hello", "{{ note }}");
    let mut column = with("recipient.sql", "to_name", "to_name, NULL AS town");
    column
        .0
        .insert("user.told/subject.txt".into(), "From {{ town }}".into());
    assert_eq!(
        said([field, column], printed_none).await,
        [
            "emails/user.told/body.html: prints `None` for what can be empty: ask first, as in \
             `{% if name %}{{ name }}{% endif %}`",
            "emails/user.told/subject.txt: prints `None` for what can be empty: ask first, as in \
             `{% if name %}{{ name }}{% endif %}`",
        ]
    );
}

#[test]
fn a_file_that_nothing_uses_or_that_is_not_there_is_named() {
    let stage = Stage::of(sound());
    let folder = stage.catalogue.folder("user.told").unwrap();
    let stale = |source: &Source| stale_schema(source, folder).unwrap().to_string();
    let mut source = stage.source;
    let schema = "emails/user.told/event.schema.json: ";
    assert!(stale(&source).starts_with(&format!("{schema}the file is missing: run `make emails`")));
    source
        .0
        .insert("user.told/event.schema.json".into(), "{}".into());
    assert!(stale(&source).starts_with(&format!(
        "{schema}not what email.toml says now: run `make emails`"
    )));

    let sample = source.0.remove("user.told/samples/sam.json").unwrap();
    let problem = without_sample(&source, folder).unwrap().to_string();
    assert!(
        problem.starts_with("emails/user.told/samples: there is no sample"),
        "{problem}"
    );
    for file in [
        "user.told/samples/sam.jsn",
        "user.told/sample/sam.json",
        "user.told/README.md",
        "notes.md",
    ] {
        source.0.insert(file.into(), sample.clone());
        let problems = unused_files(&source);
        assert!(
            problems[0]
                .to_string()
                .starts_with(&format!("emails/{file}: nothing uses this file"))
        );
        assert_eq!(problems.len(), 1);
        source.0.remove(file);
    }
}
