//! `recipient.sql` runs on Postgres, finds whom to write to, and returns what templates and logs use.

use onemail::emails::{FieldType, Folder, FolderError};
use serde_json::Value;

use crate::jobboard::Jobboard;
use crate::report::assert_none;
use crate::stage::{Scene, Stage, jobboard};

#[tokio::test]
async fn each_sample_finds_one_recipient_and_the_columns_that_are_logged() {
    let (stage, jobboard) = (Stage::shipped(), jobboard().await);
    let mut problems = Vec::new();
    for scene in stage.scenes(&jobboard).await {
        match scene {
            Ok(scene) => problems.extend(wrong_columns(&scene)),
            Err(problem) => problems.push(problem),
        }
    }
    jobboard.drop().await.unwrap();
    assert_none(&stage.source, &problems);
}

#[tokio::test]
async fn no_number_that_the_fields_admit_is_too_much_for_a_recipient_query() {
    let (stage, jobboard) = (Stage::shipped(), jobboard().await);
    let mut problems = Vec::new();
    for scene in stage.scenes(&jobboard).await.iter().flatten() {
        problems.extend(numbers_too_much(scene, &jobboard).await);
    }
    jobboard.drop().await.unwrap();
    assert_none(&stage.source, &problems);
}

pub fn wrong_columns(scene: &Scene<'_>) -> Vec<FolderError> {
    let mut problems = Vec::new();
    for column in ["to_address", "to_name"] {
        problems.extend(match scene.row.get(column) {
            Some(Value::String(_)) => None,
            Some(Value::Null) => Some(format!(
                "the column `{column}` is NULL: use coalesce(..., '')"
            )),
            Some(_) => Some(format!("the column `{column}` must be text")),
            None => Some(format!("there is no column `{column}`")),
        });
    }
    let logged = scene
        .folder()
        .logged_columns()
        .filter(|column| !scene.row.contains_key(*column));
    problems.extend(
        logged.map(|column| {
            format!("there is no column `{column}`, which [log] of email.toml names")
        }),
    );
    problems.extend(
        scene
            .row
            .keys()
            .filter_map(|column| unfit_name(scene.folder(), column)),
    );
    problems
        .into_iter()
        .map(|problem| scene.problem("recipient.sql", problem))
        .collect()
}

fn unfit_name(folder: &Folder, column: &str) -> Option<String> {
    if column == "?column?" {
        return Some("a column has no name: give it one with AS".to_owned());
    }
    let taken = matches!(column, "type" | "subject") || folder.fields().get(column).is_some();
    let problem = || {
        format!(
            "the column `{column}` hides what templates know by that name already: name it otherwise"
        )
    };
    taken.then(problem)
}

/// An event that the fields admit and the query chokes on would end in the dead-letter queue.
pub async fn numbers_too_much(scene: &Scene<'_>, jobboard: &Jobboard) -> Vec<FolderError> {
    let mut problems = Vec::new();
    for (field, bound) in bounds(scene.folder()) {
        let mut fields = scene.fields().clone();
        fields.insert(field.to_owned(), bound.clone());
        if let Err(mut problem) = jobboard.rows(&scene.event_with(fields)).await {
            problem.problem = format!(
                "{} where `{field}` is {bound}: bound the field in email.toml, or cast to bigint",
                problem.problem
            );
            problems.push(problem);
        }
    }
    problems
}

/// The least and the greatest that each integer may be.
fn bounds(folder: &Folder) -> impl Iterator<Item = (&str, Value)> {
    let integers = folder
        .fields()
        .iter()
        .filter_map(|(name, field)| match field.kind {
            FieldType::Integer { minimum, maximum } => Some((name, [minimum, maximum])),
            _ => None,
        });
    integers.flat_map(|(name, bounds)| bounds.map(|bound| (name, Value::from(bound))))
}
