//! A database that is behind the binary: refused before any work is taken, and accepted as soon as it is migrated.

use serde_json::json;

use crate::support::by_hand;
use crate::support::database::{Database, migrations};
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::lambda::Sandbox;
use crate::support::logs::Line;
use crate::support::notification;
use crate::support::proxy::{Message, Proxy};
use crate::support::ses::Ses;
use crate::support::sqs::Sqs;
use crate::support::world::World;

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

#[tokio::test]
async fn notify_refuses_before_it_claims_anything() {
    for found in 0..needed() {
        let database = database_of_version(found).await;
        let ses = Ses::start().await;
        let sandbox = Sandbox::start(&Environment::notify(&database.url(), &ses)).await;

        let keys = ["a", "b", "c"];
        let events = keys.map(|key| Record::new(&format!("m-{key}"), &interview(key)));
        let answer = sandbox.invoke(batch(events)).await;

        answer.assert_failed(&["m-a", "m-b", "m-c"]);
        ses.assert_requests(0);
        if found > 0 {
            database.assert_claims(&[]).await;
        }
        let versions = format!("version {found}, and this onemail needs {}", needed());
        for key in keys {
            let line = sandbox.logs.outcome_of(key).await;
            assert_eq!(line.level(), "ERROR", "{}", line.text);
            assert_eq!(line.field("reason"), "database_setup", "{}", line.text);
            assert_eq!(line.field("code"), "schema_too_old", "{}", line.text);
            for part in [versions.as_str(), "invoke the migrate function"] {
                assert!(line.text.contains(part), "no {part:?} in {}", line.text);
            }
        }
        let metric = sandbox.logs.wait_for("the metric", Line::is_metric).await;
        assert_eq!(metric.field("SetupErrors"), 3, "{}", metric.text);
    }
}

#[tokio::test]
async fn after_a_migration_the_same_sandbox_goes_on() {
    let database = Database::create_empty().await;
    let ses = Ses::start().await;
    let sandbox = Sandbox::start(&Environment::notify(&database.url(), &ses)).await;
    let event = || batch([Record::new("m-1", &interview("early"))]);
    sandbox.invoke(event()).await.assert_failed(&["m-1"]);

    database.fill().await;

    sandbox.invoke(event()).await.assert_none_failed();
    ses.assert_emails(1);
    database.assert_claims(&[("early", "sent")]).await;
}

#[tokio::test]
async fn the_refused_message_comes_back_as_after_any_failure() {
    let database = Database::create_empty().await;
    let (ses, sqs) = (Ses::start().await, Sqs::start().await);
    let environment =
        Environment::notify(&database.url(), &ses).with("AWS_ENDPOINT_URL_SQS", &sqs.url());
    let sandbox = Sandbox::start(&environment).await;
    let record = Record::new("m-1", &interview("early"));

    sandbox
        .invoke(batch([record]))
        .await
        .assert_failed(&["m-1"]);

    let delays = sqs.delays_of("m-1");
    assert!(
        matches!(delays.as_slice(), [22..=30]),
        "after {delays:?} seconds"
    );
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_no_matter_of_its_schema_and_is_asked_again() {
    let (world, proxy) = World::start_with_proxy().await;
    proxy.refuse_connections().await;
    let event = || batch([Record::new("m-1", &interview("again"))]);

    world.sandbox.invoke(event()).await.assert_failed(&["m-1"]);
    let line = world.sandbox.logs.outcome_of("again").await;
    assert_eq!(line.field("reason"), "database", "{}", line.text);

    proxy.take_connections().await;
    world.sandbox.invoke(event()).await.assert_none_failed();
}

/// What the statement that looks at the schema contains.
const CHECK: &str = "pg_attribute";

fn checks(proxy: &Proxy) -> usize {
    let messages = proxy.messages();
    let statements = messages.iter().filter_map(Message::sql);
    statements.filter(|sql| sql.contains(CHECK)).count()
}

#[tokio::test]
async fn where_all_is_well_the_schema_is_not_asked_for() {
    let (world, proxy) = World::start_with_proxy().await;
    let records = (0..20).map(|number| {
        let id = format!("event-{number}");
        Record::new(&id, &interview(&id))
    });
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    assert_eq!(checks(&proxy), 0);
}

/// The statement that finds nothing is an email's own.
#[tokio::test]
async fn a_table_of_the_job_board_that_is_missing_is_no_matter_of_the_schema() {
    let world = World::start().await;
    world
        .database
        .execute("DROP TABLE jobs_application CASCADE")
        .await;

    let record = Record::new("m-1", &interview("lost"));
    let answer = world.sandbox.invoke(batch([record])).await;

    answer.assert_failed(&["m-1"]);
    let line = world.sandbox.logs.outcome_of("lost").await;
    assert_eq!(line.field("reason"), "database_setup", "{}", line.text);
    assert_eq!(line.field("code"), "42P01", "{}", line.text);
}

#[tokio::test]
async fn feedback_refuses_too() {
    let database = Database::create_empty().await;
    let sqs = Sqs::start().await;
    let environment = Environment::feedback(&database.url(), &sqs);
    let sandbox = Sandbox::start_function("feedback", &environment).await;
    let notification = notification::send("told", "0100018f-told");
    let event = || batch([notification::record("m-1", &notification)]);

    sandbox.invoke(event()).await.assert_failed(&["m-1"]);
    let refused = |line: &Line| line.field("code") == "schema_too_old";
    let line = sandbox.logs.wait_for("the refusal", refused).await;
    assert_eq!(line.level(), "ERROR", "{}", line.text);

    database.fill().await;
    sandbox.invoke(event()).await.assert_none_failed();
}
