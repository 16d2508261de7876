//! The folder that docs/emails.md makes from nothing is one that works.

use std::fs;

use onemail::receive::Event;
use serde_json::json;

use crate::content::wrong_emails;
use crate::folders::unused_files;
use crate::hostile_values::obeyed_values;
use crate::recipients::wrong_columns;
use crate::report::assert_none;
use crate::source::Source;
use crate::specimen::{sound, with};
use crate::stage::{Stage, jobboard};

#[tokio::test]
async fn the_folder_of_the_tutorial_works_as_it_is_written() {
    let (stage, jobboard) = (Stage::of(tutorial()), jobboard().await);
    let mut scenes = stage.scenes(&jobboard).await;
    jobboard.drop().await.unwrap();
    let scene = scenes
        .remove(0)
        .unwrap_or_else(|problem| panic!("{}", stage.source.explain(&problem)));
    let mut problems = wrong_columns(&scene);
    problems.extend(wrong_emails(&scene));
    problems.extend(obeyed_values(&scene));
    problems.extend(unused_files(&stage.source));
    assert_none(&stage.source, &problems);

    let email = scene.email().unwrap();
    assert_eq!(email.subject, "Your job posting ends on 2027-03-31");
    assert!(
        email
            .html
            .contains("<strong>Backend Engineer</strong> ends on 2027-03-31.")
    );
    assert!(
        email
            .text
            .contains("Your posting for Backend Engineer\nends on 2027-03-31.")
    );
    assert!(
        email
            .tags
            .contains(&("event_id", "expiring-51-2027-03-31".to_owned()))
    );
}

#[test]
fn the_key_of_the_exercise_fits_and_is_made_of_the_user_and_half_of_the_hash() {
    let page = page();
    let (_, exercise) = page.split_once("\nExercise: ").unwrap();
    let code = exercise
        .lines()
        .skip_while(|line| !line.starts_with("    "));
    let code = code.take_while(|line| line.is_empty() || line.starts_with("    "));
    let mut source = sound();
    source.0.retain(|path, _| !path.contains("/samples/"));
    source.0.insert(
        "user.told/email.toml".into(),
        code.collect::<Vec<_>>().join("\n"),
    );

    let sha256 = "0123456789abcdef".repeat(4);
    let event = json!({ "type": "user.told", "user_id": i64::MAX, "photo_sha256": sha256 });
    let stage = Stage::of(source);
    let event = Event::parse(Some(&event.to_string()), &stage.catalogue).unwrap();
    assert_eq!(
        event.key.as_str(),
        "photo-9223372036854775807-0123456789abcdef0123456789abcdef"
    );
}

#[test]
fn a_tag_alone_on_a_line_leaves_no_line_and_one_at_the_end_takes_the_break_with_it() {
    let body = "one\n  {% if true %}\ntwo\n  {% endif %}\nthree {% if true %}\nfour{% endif %}\n";
    let stage = Stage::of(with("body.txt", "Hello {{ to_name }}\n", body));
    let folder = stage.catalogue.folder("user.told").unwrap();
    let text = stage.catalogue.render(folder, "body.txt", &json!({}));
    assert_eq!(text.unwrap(), "one\ntwo\nthree four");
}

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/emails.md");
    fs::read_to_string(page).expect("the page is there")
}

/// Each indented block of the tutorial is the file that the sentence before it names.
fn tutorial() -> Source {
    let page = page();
    let mut chapters = page.split("\n## ");
    let tutorial = chapters
        .find(|chapter| chapter.starts_with("From nothing to an email\n"))
        .expect("the tutorial is a chapter of the page");

    let mut source = Source::on_disk().expect("the layouts are there");
    source.0.retain(|path, _| !path.contains('/'));
    let mut named = None;
    let mut block = String::new();
    for line in tutorial.lines().chain(["end"]) {
        if let Some(code) = line.strip_prefix("       ") {
            block += code;
            block += "\n";
        } else if line.is_empty() {
            block += "\n";
        } else {
            if let Some(file) = named.take().filter(|_| !block.trim().is_empty()) {
                source.0.insert(
                    format!("posting.expiring/{file}"),
                    block.trim_matches('\n').to_owned() + "\n",
                );
            }
            block.clear();
            named = file_named(line);
        }
    }
    source
}

/// `... in `email.toml`, and so on:`
fn file_named(line: &str) -> Option<String> {
    let mut quoted = line.strip_suffix(':')?.split('`').skip(1).step_by(2);
    let file = quoted.next()?;
    (!file.is_empty()).then(|| file.to_owned())
}
