//! The schema: made by `migrate`, once, whoever asks and however often.

use serde_json::{Value, json};

use crate::support::by_hand;
use crate::support::database::{Database, migrations};
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::ses::{Reply, Ses};
use crate::support::world::World;

/// Applies the migrations by hand, and gives the answer.
async fn migrate(database: &Database) -> Value {
    migrate_by_url(database.url()).await
}

async fn migrate_by_url(url: String) -> Value {
    let run = by_hand::run(&Environment::migrate(&url), &["migrate", "-"], "{}").await;
    assert!(run.success, "{run:?}");
    serde_json::from_str(&run.stdout).expect("the answer alone on standard output")
}

#[track_caller]
fn applied(answer: &Value) -> usize {
    answer["applied"]
        .as_array()
        .unwrap_or_else(|| panic!("no list in {answer}"))
        .len()
}

#[tokio::test]
async fn migrate_makes_the_tables_and_tells_the_version() {
    let database = Database::create_empty().await;

    let answer = migrate(&database).await;

    assert!(applied(&answer) > 0, "{answer}");
    assert!(
        answer["schema_version"]
            .as_u64()
            .is_some_and(|version| version > 0),
        "{answer}"
    );
    database.assert_claims(&[]).await;
    database
        .query(
            "SELECT event_id, ses_message_id, kind, occurred_at, detail FROM email_feedback",
            &[],
        )
        .await;
}

#[tokio::test]
async fn the_ledger_has_the_columns_that_other_programs_rely_on() {
    let database = Database::create().await;
    let columns = "SELECT column_name::text, data_type::text, character_maximum_length::int, is_nullable::text \
                   FROM information_schema.columns \
                   WHERE table_name = 'processed_events' AND table_schema = current_schema";
    let columns: Vec<(String, String, Option<i32>, String)> = database
        .query(columns, &[])
        .await
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
        .collect();

    let expected = [
        ("event_id", "character varying", Some(64), "NO"),
        ("event_type", "character varying", Some(100), "NO"),
        ("processed_at", "timestamp with time zone", None, "NO"),
        ("outcome", "text", None, "NO"),
        ("ses_message_id", "text", None, "YES"),
        ("settled_by", "text", None, "NO"),
        ("payload_sha256", "bytea", None, "NO"),
    ];
    for (name, kind, length, nullable) in expected {
        let column = (
            name.to_owned(),
            kind.to_owned(),
            length,
            nullable.to_owned(),
        );
        assert!(columns.contains(&column), "no {column:?} in {columns:#?}");
    }
}

#[tokio::test]
async fn a_second_migrate_applies_nothing() {
    let database = Database::create_empty().await;

    let first = migrate(&database).await;
    let second = migrate(&database).await;

    assert_eq!(
        second,
        json!({ "applied": [], "schema_version": first["schema_version"] })
    );
}

#[tokio::test]
async fn migrates_at_the_same_moment_are_harmless() {
    let database = Database::create_empty().await;

    let answers = tokio::join!(
        migrate(&database),
        migrate(&database),
        migrate(&database),
        migrate(&database)
    );

    let counts = [&answers.0, &answers.1, &answers.2, &answers.3].map(applied);
    assert_eq!(
        counts.iter().filter(|count| **count > 0).count(),
        1,
        "{answers:?}"
    );
}

#[tokio::test]
async fn migrate_answers_in_lambda_whatever_it_is_sent() {
    let database = Database::create_empty().await;
    let sandbox = Sandbox::start_function("migrate", &Environment::migrate(&database.url())).await;

    for (payload, count) in [
        (json!({}), 1),
        (Value::Null, 0),
        (json!({ "RequestType": "Update" }), 0),
        (json!([]), 0),
    ] {
        let answer = sandbox.try_invoke(payload).await.expect("an answer");
        assert_eq!(applied(&answer).min(1), count, "{answer}");
    }
}

#[tokio::test]
async fn migrate_says_why_it_cannot() {
    let database = Database::create_empty().await;
    database
        .execute("CREATE TABLE processed_events (unlike int)")
        .await;
    let sandbox = Sandbox::start_function("migrate", &Environment::migrate(&database.url())).await;

    let failure = sandbox
        .try_invoke(json!({}))
        .await
        .expect_err("the table is in the way");

    assert!(
        failure.message().contains("processed_events"),
        "{}",
        failure.message()
    );
}

#[tokio::test]
async fn the_tables_are_in_the_schema_that_the_search_path_names_first() {
    let database = Database::create_empty().await;
    // The second schema has a ledger already, which is somebody else's.
    let search_path = "ALTER ROLE CURRENT_USER SET search_path = \"$user\", public";
    database.execute(search_path).await;

    let answer = migrate(&database).await;

    assert!(applied(&answer) > 0, "{answer}");
    let tables = "SELECT table_name::text FROM information_schema.tables \
                  WHERE table_schema = current_user";
    let tables = database.query(tables, &[]).await;
    let tables: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
    for table in ["email_feedback", "processed_events"] {
        assert!(
            tables.iter().any(|name| name == table),
            "no {table} among {tables:?}"
        );
    }
}

#[tokio::test]
async fn notify_without_a_schema_reports_its_records() {
    let database = Database::create_empty().await;
    let ses = Ses::start().await;
    let sandbox = Sandbox::start(&Environment::notify(&database.url(), &ses)).await;

    sandbox
        .invoke(batch([Record::new("m-1", &interview("early"))]))
        .await
        .assert_failed(&["m-1"]);

    ses.assert_requests(0);
}

/// A migration in the middle of which something is in the way.
#[tokio::test]
async fn a_migration_that_fails_leaves_nothing_half_done_and_can_be_repeated() {
    let database = Database::create_empty().await;
    database
        .execute("CREATE TABLE email_feedback (unlike int)")
        .await;
    let environment = Environment::migrate(&database.url());

    let run = by_hand::run(&environment, &["migrate", "-"], "{}").await;

    assert!(!run.success, "{run:?}");
    assert!(run.stderr.contains("email_feedback"), "{}", run.stderr);
    let made = "SELECT count(*) FROM pg_class \
                WHERE relnamespace = current_schema::regnamespace AND relname LIKE 'processed_events%'";
    assert_eq!(database.query(made, &[]).await[0].get::<_, i64>(0), 0);
    let recorded = "SELECT count(*) FROM onemail_migrations";
    assert_eq!(database.query(recorded, &[]).await[0].get::<_, i64>(0), 0);

    database.execute("DROP TABLE email_feedback").await;
    let answer = migrate(&database).await;
    assert_eq!(applied(&answer), migrations().len(), "{answer}");
}

#[tokio::test]
async fn an_older_binary_leaves_a_newer_schema_as_it_is() {
    let database = Database::create_empty().await;
    let version = migrate(&database).await["schema_version"].clone();
    let newer = "ALTER TABLE processed_events ADD COLUMN added_later text; \
                 INSERT INTO onemail_migrations SELECT max(version) + 1, 'later', max(applied_on), '7' \
                   FROM onemail_migrations";
    database.execute(newer).await;

    let answer = migrate(&database).await;

    let newer = version.as_u64().map(|version| version + 1);
    assert_eq!(answer, json!({ "applied": [], "schema_version": newer }));
    database
        .query("SELECT added_later FROM processed_events", &[])
        .await;
}

#[tokio::test]
async fn a_newer_schema_without_a_migration_of_ours_is_refused() {
    let database = Database::create_empty().await;
    migrate(&database).await;
    let other = "INSERT INTO onemail_migrations SELECT max(version) + 1, 'later', max(applied_on), '7' \
                   FROM onemail_migrations; \
                 DELETE FROM onemail_migrations WHERE version = 2";
    database.execute(other).await;
    let environment = Environment::migrate(&database.url());

    let run = by_hand::run(&environment, &["migrate", "-"], "{}").await;

    assert!(!run.success, "{run:?}");
    assert!(run.stderr.contains("V2__"), "{}", run.stderr);
}

/// What the next migration does to a table, under the limits that `migrate` sets.
const NEXT_MIGRATION: &str = "BEGIN; SET LOCAL lock_timeout = 1000; \
                              ALTER TABLE processed_events ADD COLUMN added_later text; COMMIT";

#[tokio::test]
async fn a_migration_beside_a_batch_that_is_worked_on_loses_nothing() {
    let world = World::start().await;
    let gate = Gate::closed();
    world
        .ses
        .reply_to_event("event-0", Reply::accept().after(&gate));
    let migration = world.database.neighbour().await;

    let records = (0..30).map(|number| {
        let event = interview(&format!("event-{number}"));
        Record::new(&format!("m-{number}"), &event)
    });
    let working = world.sandbox.begin(batch(records));
    world.ses.received(1).await;
    // In transaction mode it waits in vain for the send that is underway, and the claims wait behind it.
    let done = migration.batch_execute(NEXT_MIGRATION).await.is_ok();
    gate.open();
    working.answer().await.assert_none_failed();
    if !done {
        migration
            .batch_execute("ROLLBACK")
            .await
            .expect("it is open");
        migration
            .batch_execute(NEXT_MIGRATION)
            .await
            .expect("nobody is at work any more");
    }

    world.ses.assert_emails(30);
    assert_eq!(world.database.claims().await.len(), 30);
    let event = batch([Record::new("m-30", &interview("event-30"))]);
    world.sandbox.invoke(event).await.assert_none_failed();
}

/// A session that somebody forgot must not stop every email for as long as a migration waits for it.
#[tokio::test]
async fn a_migration_that_waits_for_a_forgotten_transaction_lets_the_claims_pass() {
    let database = Database::create().await;
    // The last migration is still to come, and wants the table for itself.
    let undone = "ALTER TABLE processed_events DROP COLUMN attempt, DROP COLUMN lease_until; \
                  DELETE FROM onemail_migrations WHERE version = 3";
    database.execute(undone).await;
    let (forgotten, claim) = (database.neighbour().await, database.neighbour().await);
    let reads = "BEGIN; SELECT count(*) FROM processed_events";
    forgotten.batch_execute(reads).await.expect("it is there");

    let migrating = tokio::spawn(migrate_by_url(database.url()));
    database.somebody_blocked().await;
    let claimed = "SET lock_timeout = 5000; \
                   INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256) \
                   VALUES ('meanwhile', 'order.placed', 'sent', 'worker', '')";
    claim
        .batch_execute(claimed)
        .await
        .expect("it gets its turn");
    forgotten.batch_execute("COMMIT").await.expect("it is open");

    let migrated = migrating.await.expect("it doesn't panic");
    assert_eq!(applied(&migrated), 1, "{migrated}");
    database.assert_claims(&[("meanwhile", "sent")]).await;
}
