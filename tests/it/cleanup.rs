//! What `cleanup` deletes, what it never does, and that nobody beside it notices.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::by_hand;
use crate::support::database::Database;
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::logs::Line;
use crate::support::proxy::{Proxy, Then};
use crate::support::world::World;

/// More time than any of this takes.
const AMPLE: Duration = Duration::from_secs(300);

async fn start(database: &Database) -> Sandbox {
    start_at(&database.url()).await
}

async fn start_at(url: &str) -> Sandbox {
    Sandbox::start_function("cleanup", &Environment::cleanup(url)).await
}

/// Runs it to the end of what is old, and gives how many rows it says it deleted.
async fn clean(sandbox: &Sandbox) -> u64 {
    let ended = sandbox.begin_within(json!({}), AMPLE).value().await;
    deleted(&ended.unwrap_or_else(|failure| panic!("{failure:?}\n{}", sandbox.logs.text())))
}

#[track_caller]
fn deleted(answer: &Value) -> u64 {
    let deleted = answer["deleted"].as_u64();
    let deleted = deleted.unwrap_or_else(|| panic!("no number in {answer}"));
    assert_eq!(answer, &json!({ "deleted": deleted }));
    deleted
}

/// Rows of the ledger with these keys.
async fn insert_claims(database: &Database, keys: &[&str], outcome: &str, age: &str) {
    for key in keys {
        let insert = format!(
            "INSERT INTO processed_events (event_id, event_type, processed_at, outcome, settled_by, payload_sha256) \
             VALUES ('{key}', 'order.placed', now() - interval '{age}', '{outcome}', 'worker', '')"
        );
        database.execute(&insert).await;
    }
}

/// So many rows of the ledger, all of one moment.
async fn insert_many(database: &Database, prefix: &str, count: u32, age: &str) {
    let insert = format!(
        "INSERT INTO processed_events (event_id, event_type, processed_at, outcome, settled_by, payload_sha256) \
         SELECT '{prefix}-' || n, 'order.placed', now() - interval '{age}', 'sent', 'worker', sha256(n::text::bytea) \
           FROM generate_series(1, {count}) AS n"
    );
    database.execute(&insert).await;
}

async fn insert_feedback(database: &Database, id: &str, age: &str) {
    let insert = format!(
        "INSERT INTO email_feedback (event_id, ses_message_id, kind, occurred_at) \
         VALUES ('of-{id}', '{id}', 'delivery', now() - interval '{age}')"
    );
    database.execute(&insert).await;
}

async fn insert_mark(database: &Database, key: &str, age: &str) {
    let insert = format!(
        "INSERT INTO sends_in_doubt (event_id, in_doubt_until) VALUES ('{key}', now() - interval '{age}')"
    );
    database.execute(&insert).await;
}

async fn texts(database: &Database, query: &str) -> Vec<String> {
    let rows = database.query(query, &[]).await;
    rows.iter().map(|row| row.get(0)).collect()
}

async fn count(database: &Database, query: &str) -> i64 {
    database.query(query, &[]).await[0].get(0)
}

async fn line(sandbox: &Sandbox) -> Line {
    let is_line = |line: &Line| line.fields.contains_key("processed_events");
    sandbox.logs.wait_for("what the run did", is_line).await
}

#[tokio::test]
async fn what_is_older_than_the_retention_is_deleted_and_nothing_else() {
    let database = Database::create().await;
    insert_claims(&database, &["old-1", "old-2", "old-3"], "sent", "31 days").await;
    insert_claims(&database, &["skipped"], "skipped", "400 days").await;
    insert_claims(&database, &["withheld"], "withheld", "31 days").await;
    insert_claims(&database, &["young-1"], "sent", "29 days").await;
    insert_claims(&database, &["young-2"], "skipped", "0 days").await;
    insert_feedback(&database, "old", "31 days").await;
    insert_feedback(&database, "young", "29 days").await;
    insert_mark(&database, "old", "31 days").await;
    insert_mark(&database, "young", "29 days").await;
    insert_mark(&database, "future", "-1 hour").await;
    let sandbox = start(&database).await;

    assert_eq!(clean(&sandbox).await, 7);

    database
        .assert_claims(&[("young-1", "sent"), ("young-2", "skipped")])
        .await;
    let feedback = texts(&database, "SELECT ses_message_id FROM email_feedback").await;
    assert_eq!(feedback, ["young"]);
    let marks = "SELECT event_id::text FROM sends_in_doubt ORDER BY event_id";
    assert_eq!(texts(&database, marks).await, ["future", "young"]);
    let line = line(&sandbox).await;
    assert_eq!(line.level(), "INFO");
    for (field, value) in [
        ("processed_events", 5),
        ("email_feedback", 1),
        ("sends_in_doubt", 1),
    ] {
        assert_eq!(line.field(field), value, "{field}: {}", line.text);
    }
    assert_eq!(line.field("finished"), true);
    let metric = sandbox.logs.wait_for("the metric", Line::is_metric).await;
    assert_eq!(metric.field("Deleted"), 7, "{}", metric.text);

    assert_eq!(clean(&sandbox).await, 0, "a second run has nothing to do");
}

#[tokio::test]
async fn what_is_sending_or_unknown_is_never_deleted() {
    let database = Database::create().await;
    insert_claims(&database, &["sending"], "sending", "5000 days").await;
    insert_claims(&database, &["unknown"], "unknown", "5000 days").await;
    let sandbox = start(&database).await;

    for _ in 0..2 {
        assert_eq!(clean(&sandbox).await, 0);
    }

    database
        .assert_claims(&[("sending", "unknown"), ("unknown", "unknown")])
        .await;
}

#[tokio::test]
async fn the_retention_is_the_variables() {
    let database = Database::create().await;
    insert_claims(&database, &["13"], "sent", "13 days 23 hours").await;
    insert_claims(&database, &["14"], "sent", "14 days 1 hour").await;
    insert_claims(&database, &["99"], "sent", "99 days").await;

    for (days, expected) in [("100", 0), ("99", 1), ("14", 1)] {
        let environment = Environment::cleanup(&database.url()).with("RETENTION_DAYS", days);
        let run = by_hand::run(&environment, &["cleanup", "-"], "null").await;
        assert!(run.success, "{run:?}");
        let answer = serde_json::from_str(&run.stdout).expect("the answer alone");
        assert_eq!(deleted(&answer), expected, "after {days} days");
    }
    database.assert_claims(&[("13", "sent")]).await;
}

#[tokio::test]
async fn a_retention_that_sqs_can_outlast_stops_the_process_and_is_named() {
    // Nobody connects.
    let environment = Environment::cleanup("postgresql://worker@127.0.0.1:9/jobs");
    for days in ["13", "0", "-1", "30d", "1.5"] {
        let environment = environment.clone().with("RETENTION_DAYS", days);
        let sandbox = Sandbox::spawn("cleanup", &environment).await;

        assert!(!sandbox.exited().await.success(), "{days} was accepted");

        let lines = sandbox.logs.to_the_end().await;
        assert_eq!(lines.len(), 1, "{days}: {}", sandbox.logs.text());
        assert!(
            lines[0].text.contains("RETENTION_DAYS"),
            "{}",
            lines[0].text
        );
    }
}

#[tokio::test]
async fn any_payload_will_do() {
    let database = Database::create().await;
    let sandbox = start(&database).await;
    let scheduled = json!({ "version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    for payload in [Value::Null, json!({}), json!([]), json!("x"), scheduled] {
        let answer = sandbox.try_invoke(payload).await.expect("an answer");
        assert_eq!(deleted(&answer), 0);
    }
}

#[tokio::test]
async fn a_send_whose_message_can_no_longer_come_back_is_held() {
    let database = Database::create().await;
    for (key, processed, lease) in [
        ("abandoned", "15 days", "interval '14 days 1 hour'"),
        ("without-lease", "15 days", "NULL::interval"),
        ("lately-leased", "15 days", "interval '13 days'"),
        ("leased", "15 days", "interval '-1 minute'"),
        ("young", "13 days", "NULL::interval"),
    ] {
        insert_claims(&database, &[key], "sending", processed).await;
        let lease = format!(
            "UPDATE processed_events SET lease_until = now() - {lease}, attempt = 7 WHERE event_id = '{key}'"
        );
        database.execute(&lease).await;
    }
    let sandbox = start(&database).await;

    assert_eq!(clean(&sandbox).await, 0);

    database
        .assert_claims(&[
            ("abandoned", "unknown"),
            ("lately-leased", "sending"),
            ("leased", "sending"),
            ("without-lease", "unknown"),
            ("young", "sending"),
        ])
        .await;
    let leases = "SELECT count(*) FROM processed_events WHERE outcome = 'unknown' AND lease_until IS NOT NULL";
    assert_eq!(count(&database, leases).await, 0);
    let held = |line: &Line| line.fields.contains_key("held");
    let line = sandbox.logs.wait_for("the warning", held).await;
    assert_eq!((line.level(), line.field("held")), ("WARN", &json!(2)));
    let metric = sandbox.logs.wait_for("the metric", Line::is_metric).await;
    assert_eq!(metric.field("Held"), 2, "{}", metric.text);
}

#[tokio::test]
async fn batches_are_bounded_and_each_is_a_transaction_of_its_own() {
    let database = Database::create().await;
    // Old and young mixed in the same blocks.
    insert_many(&database, "old", 20_000, "40 days").await;
    insert_many(&database, "young", 60_000, "10 days").await;
    insert_many(&database, "older", 20_000, "50 days").await;
    insert_many(&database, "new", 100_000, "1 day").await;
    let record = "\
        CREATE TABLE batches (transaction xid8, rows bigint); \
        CREATE FUNCTION record_batch() RETURNS trigger LANGUAGE plpgsql AS \
            'BEGIN INSERT INTO batches SELECT pg_current_xact_id(), count(*) FROM gone; RETURN NULL; END'; \
        CREATE TRIGGER record_batch AFTER DELETE ON processed_events \
            REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION record_batch()";
    database.execute(record).await;
    let sandbox = start(&database).await;

    assert_eq!(clean(&sandbox).await, 40_000);

    let batches = database
        .query(
            "SELECT count(*), count(DISTINCT transaction), max(rows), sum(rows)::bigint FROM batches",
            &[],
        )
        .await;
    let [batches, transactions, most, sum]: [i64; 4] = [0, 1, 2, 3].map(|n| batches[0].get(n));
    assert_eq!(transactions, batches, "two batches in one transaction");
    assert!(most <= 2000, "a batch of {most} rows");
    assert_eq!(sum, 40_000);
    let left = "SELECT count(*) FROM processed_events WHERE event_id !~ '^(young|new)-'";
    assert_eq!(count(&database, left).await, 0);
    let left = "SELECT count(*) FROM processed_events";
    assert_eq!(count(&database, left).await, 160_000);
}

#[tokio::test]
async fn without_time_nothing_is_begun_and_the_next_run_goes_on() {
    let database = Database::create().await;
    insert_claims(&database, &["old"], "sent", "31 days").await;
    let sandbox = start(&database).await;

    let hasty = sandbox.begin_within(json!({}), Duration::from_millis(1400));
    assert_eq!(deleted(&hasty.value().await.expect("in time")), 0);
    let line = line(&sandbox).await;
    assert_eq!(line.field("finished"), false, "{}", line.text);
    assert!(line.text.contains("next run"), "{}", line.text);

    assert_eq!(clean(&sandbox).await, 1);
}

#[tokio::test]
async fn runs_that_their_deadlines_stop_answer_in_time_and_get_there_together() {
    let database = Database::create().await;
    insert_many(&database, "old", 20_000, "40 days").await;
    let sandbox = start(&database).await;

    let mut sum = 0;
    let mut runs = 0;
    while sum < 20_000 {
        let running = sandbox.begin_within(json!({}), Duration::from_millis(1800));
        sum += deleted(
            &running
                .value()
                .await
                .expect("an answer before the deadline"),
        );
        runs += 1;
        assert!(runs < 100, "{sum} rows in {runs} runs");
    }

    assert_eq!(sum, 20_000);
    database.assert_claims(&[]).await;
}

async fn start_with_proxy(database: &Database) -> (Sandbox, Proxy) {
    let proxy = Proxy::start(crate::support::database::server_port()).await;
    let sandbox = start_at(&database.url_at(proxy.port())).await;
    (sandbox, proxy)
}

const DELETE: &str = "DELETE FROM processed_events";

#[tokio::test]
async fn a_run_that_dies_leaves_what_it_did_and_holds_nothing() {
    let database = Database::create().await;
    insert_many(&database, "old", 5000, "40 days").await;
    let (sandbox, proxy) = start_with_proxy(&database).await;
    let (first, second) = (Gate::closed(), Gate::closed());
    let reached_first = proxy.at(DELETE, Then::Hold(first.clone()));

    let _running = sandbox.begin_within(json!({}), AMPLE);
    reached_first.happened().await;
    let reached_second = proxy.at(DELETE, Then::Hold(second.clone()));
    first.open();
    reached_second.happened().await;
    let reached_commit = proxy.at("COMMIT", Then::Hold(Gate::closed()));
    second.open();
    reached_commit.happened().await;
    sandbox.kill().await;
    database.transactions_over().await;

    let left = count(&database, "SELECT count(*) FROM processed_events").await;
    assert!(left > 0 && left < 5000, "{left} rows are left");
    let next = start(&database).await;
    assert_eq!(i64::try_from(clean(&next).await), Ok(left));
}

#[tokio::test]
async fn a_batch_in_the_middle_of_its_work_keeps_no_event_waiting() {
    let world = World::start().await;
    insert_many(&world.database, "old", 2000, "40 days").await;
    let (cleanup, proxy) = start_with_proxy(&world.database).await;
    let (before, after) = (Gate::closed(), Gate::closed());
    let reached = proxy.at(DELETE, Then::Hold(before.clone()));

    let running = cleanup.begin_within(json!({}), AMPLE);
    reached.happened().await;
    let deleted_not_committed = proxy.at("COMMIT", Then::Hold(after.clone()));
    before.open();
    deleted_not_committed.happened().await;
    let records =
        (0..10).map(|n| Record::new(&format!("m-{n}"), &interview(&format!("event-{n}"))));
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();
    after.open();

    assert_eq!(deleted(&running.value().await.expect("an answer")), 2000);
    world.ses.assert_emails(10);
}

#[tokio::test]
async fn a_row_that_somebody_works_on_is_passed_over_until_the_next_run() {
    let database = Database::create().await;
    insert_claims(&database, &["a", "b", "c"], "sent", "31 days").await;
    let neighbour = database.neighbour().await;
    let lock = "BEGIN; SELECT FROM processed_events WHERE event_id = 'b' FOR UPDATE";
    neighbour.batch_execute(lock).await.expect("it is free");
    let sandbox = start(&database).await;

    assert_eq!(clean(&sandbox).await, 2);
    database.assert_claims(&[("b", "sent")]).await;

    neighbour.batch_execute("COMMIT").await.expect("it is open");
    assert_eq!(clean(&sandbox).await, 1);
}

#[tokio::test]
async fn two_runs_at_once_delete_each_row_once() {
    let database = Database::create().await;
    insert_many(&database, "old", 30_000, "40 days").await;
    let (one, other) = (start(&database).await, start(&database).await);

    let (one, other) = tokio::join!(clean(&one), clean(&other));

    assert_eq!(one + other, 30_000, "{one} and {other}");
    database.assert_claims(&[]).await;
}

#[tokio::test]
async fn a_table_that_fails_does_not_keep_the_others_from_being_cleaned() {
    let database = Database::create().await;
    insert_claims(&database, &["old"], "sent", "31 days").await;
    insert_feedback(&database, "old", "31 days").await;
    insert_mark(&database, "old", "31 days").await;
    let failing = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS \
                       'BEGIN RAISE EXCEPTION ''sam@example.com''; END'; \
                   CREATE TRIGGER fail BEFORE DELETE ON processed_events FOR EACH ROW EXECUTE FUNCTION fail()";
    database.execute(failing).await;
    let sandbox = start(&database).await;

    let failure = sandbox
        .try_invoke(json!({}))
        .await
        .expect_err("a trigger fails");

    assert!(
        failure.message().contains("2 rows"),
        "{}",
        failure.message()
    );
    assert!(!sandbox.logs.text().contains("sam@example.com"));
    database.assert_claims(&[("old", "sent")]).await;
    assert_eq!(
        count(&database, "SELECT count(*) FROM email_feedback").await,
        0
    );
    assert_eq!(
        count(&database, "SELECT count(*) FROM sends_in_doubt").await,
        0
    );
    assert_eq!(line(&sandbox).await.field("finished"), false);
}

#[tokio::test]
async fn a_connection_that_breaks_is_replaced() {
    let database = Database::create().await;
    insert_many(&database, "old", 5000, "40 days").await;
    let (sandbox, proxy) = start_with_proxy(&database).await;
    let cut = proxy.at(DELETE, Then::Cut);

    assert_eq!(clean(&sandbox).await, 5000);

    cut.happened().await;
}
