//! A database that is behind the binary: refused before any work is taken, and accepted as soon as it is migrated.

use serde_json::json;

use crate::support::by_hand;
use crate::support::database::{Database, migrations};
use crate::support::environment::Environment;
use crate::support::lambda::Sandbox;

/// A ledger as the first migrations left it.
async fn database_of_version(version: usize) -> Database {
    let database = Database::create_empty().await;
    for migration in &migrations()[..version] {
        let statements = std::fs::read_to_string(migration).expect("it can be read");
        database.execute(&statements).await;
    }
    database
}

fn needed() -> usize {
    migrations().len()
}

#[tokio::test]
async fn cleanup_says_which_version_it_found_which_it_needs_and_what_to_do() {
    for found in 0..needed() {
        let database = database_of_version(found).await;
        let environment = Environment::cleanup(&database.url());

        let run = by_hand::run(&environment, &["cleanup", "-"], "{}").await;

        assert!(!run.success, "{run:?}");
        assert_eq!(run.stdout, "");
        let versions = format!("version {found}, and this onemail needs {}", needed());
        for part in [versions.as_str(), "invoke the migrate function"] {
            assert!(run.stderr.contains(part), "no {part:?} in {}", run.stderr);
        }
        // Where nothing is found, it may be that the role sees nothing.
        let role_named = run.stderr.contains(database.name());
        assert_eq!(role_named, found == 0, "{}", run.stderr);
    }
}

#[tokio::test]
async fn after_a_migration_the_same_sandbox_of_cleanup_goes_on() {
    let database = Database::create_empty().await;
    let environment = Environment::cleanup(&database.url());
    let sandbox = Sandbox::start_function("cleanup", &environment).await;
    let failure = sandbox.try_invoke(json!({})).await;
    let failure = failure.expect_err("there is no schema");
    assert!(failure.message().contains("migrate"), "{failure:?}");

    database.fill().await;

    let answer = sandbox.try_invoke(json!({})).await.expect("an answer");
    assert_eq!(answer, json!({ "deleted": 0 }));
}

/// And whether the history of the migrations can be read, or is there, is no matter.
#[tokio::test]
async fn a_schema_that_is_newer_is_as_good() {
    let database = Database::create().await;
    let newer = "ALTER TABLE processed_events ADD COLUMN added_later text; \
                 CREATE TABLE added_later (id int); \
                 DROP TABLE onemail_migrations";
    database.execute(newer).await;

    let run = by_hand::run(
        &Environment::cleanup(&database.url()),
        &["cleanup", "-"],
        "{}",
    )
    .await;

    assert!(run.success, "{run:?}");
}
