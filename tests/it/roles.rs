//! The functions under the roles of `docs/database/roles.md`, whose statements are executed as they stand there.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::support::by_hand;
use crate::support::database;
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::notification;
use crate::support::ses::{Reply, Ses};
use crate::support::sqs::Sqs;

/// A job board in a database of its own, since what is in `public` and who may use it are of the database.
struct Roles {
    name: String,
    administrator: Client,
}

impl Roles {
    /// The statements of the document's section, for roles that no other test has.
    fn statements(&self, section: &str) -> String {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/database/roles.md");
        let text = std::fs::read_to_string(file).expect("the document");
        let section = text
            .split("\n## ")
            .find(|part| part.starts_with(section))
            .unwrap_or_else(|| panic!("no section {section:?}"));
        let block = section
            .split_once("```sql\n")
            .and_then(|(_, rest)| rest.split_once("```"))
            .unwrap_or_else(|| panic!("no statements in {section:?}"));
        block
            .0
            .replace("onemail_owner", &self.owner())
            .replace("onemail_worker", &self.worker())
    }

    fn owner(&self) -> String {
        format!("{}_owner", self.name)
    }

    fn worker(&self) -> String {
        format!("{}_worker", self.name)
    }

    fn url(&self, role: &str) -> String {
        let port = database::server_port();
        format!("postgresql://{role}@127.0.0.1:{port}/{}", self.name)
    }

    async fn execute(&self, statements: &str) {
        let executed = self.administrator.batch_execute(statements).await;
        executed.unwrap_or_else(|error| panic!("{error:?}: {statements}"));
    }

    async fn before_the_migration() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("roles_{}_{number}", std::process::id());
        let administrator = database::administrator(None).await;
        let created = administrator
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .await;
        created.expect("the server allows another database");
        let administrator = database::administrator(Some(&name)).await;
        let roles = Self {
            name,
            administrator,
        };
        let jobboard = concat!(env!("CARGO_MANIFEST_DIR"), "/local/jobboard.sql");
        let jobboard = std::fs::read_to_string(jobboard).expect("the job board's fixture");
        roles.execute(&jobboard).await;
        // What a job board has besides.
        let private = "ALTER TABLE auth_user ADD COLUMN password text; \
                       CREATE TABLE jobs_note (id int, text text)";
        roles.execute(private).await;
        roles.execute(&roles.statements("Before the first")).await;
        roles
    }

    async fn set_up() -> Self {
        let roles = Self::before_the_migration().await;
        let migrated = roles.migrate(&roles.owner()).await;
        assert!(migrated.success, "{migrated:?}");
        roles.execute(&roles.statements("After the first")).await;
        roles
    }

    async fn migrate(&self, role: &str) -> by_hand::Run {
        let environment = Environment::migrate(&self.url(role));
        by_hand::run(&environment, &["migrate", "-"], "{}").await
    }

    async fn connect(&self, role: &str) -> Client {
        let connected = tokio_postgres::connect(&self.url(role), tokio_postgres::NoTls).await;
        let (client, connection) = connected.expect("the role may connect");
        tokio::spawn(connection);
        client
    }

    /// Keys and outcomes in the ledger.
    async fn claims(&self) -> Vec<(String, String)> {
        let query = "SELECT event_id, outcome FROM onemail.processed_events ORDER BY event_id";
        let rows = self.administrator.query(query, &[]).await;
        let rows = rows.expect("the ledger is there");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

fn assert_denied(result: Result<(), tokio_postgres::Error>, statement: &str) {
    let error = result.expect_err(statement);
    assert_eq!(
        error.code(),
        Some(&SqlState::INSUFFICIENT_PRIVILEGE),
        "{statement}: {error:?}"
    );
}

#[tokio::test]
async fn the_whole_path_runs_under_the_weaker_role() {
    let roles = Roles::set_up().await;
    let (ses, sqs) = (Ses::start().await, Sqs::start().await);
    let url = roles.url(&roles.worker());
    let notify = Environment::notify(&url, &ses).with("AWS_ENDPOINT_URL_SQS", &sqs.url());
    let notify = Sandbox::start(&notify).await;
    let feedback = Sandbox::start_function("feedback", &Environment::feedback(&url, &sqs)).await;
    let cleanup = Sandbox::start_function("cleanup", &Environment::cleanup(&url)).await;

    let sent = || batch([Record::new("m-1", &interview("sent"))]);
    notify.invoke(sent()).await.assert_none_failed();
    notify.invoke(sent()).await.assert_none_failed();
    // SES took it and didn't say so.
    ses.reply_next(Reply::accept_without_reply());
    let unknown = batch([Record::new("m-2", &interview("unknown"))]);
    notify.invoke(unknown).await.assert_failed(&["m-2"]);
    let told = [
        notification::send("unknown", "0100018f-unknown"),
        notification::about(
            notification::sample("bounce"),
            "unknown",
            "0100018f-unknown",
        ),
    ];
    let told = [0, 1].map(|index| notification::record(&format!("f-{index}"), &told[index]));
    feedback.invoke(batch(told)).await.assert_none_failed();

    let expected = ["sent", "unknown"].map(|key| (key.to_owned(), "sent".to_owned()));
    assert_eq!(roles.claims().await, expected);

    roles
        .execute(
            "UPDATE onemail.processed_events SET processed_at = now() - interval '40 days'; \
             UPDATE onemail.email_feedback SET occurred_at = occurred_at - interval '40 days'; \
             UPDATE onemail.sends_in_doubt SET in_doubt_until = now() - interval '40 days'; \
             INSERT INTO onemail.processed_events \
                    (event_id, event_type, processed_at, outcome, settled_by, payload_sha256) \
             VALUES ('left', 'order.placed', now() - interval '20 days', 'sending', 'worker', '')",
        )
        .await;
    let answer = cleanup.try_invoke(json!({})).await.expect("an answer");
    // A send of unknown outcome is a mark in one mode, and a row in the other.
    let marks = match Mode::of_this_run() {
        Mode::Transaction => 1,
        Mode::Lease => 0,
    };
    assert_eq!(
        answer,
        json!({ "deleted": 4 + marks }),
        "two claims, two notifications, and what was marked"
    );
    let expected = ("left".to_owned(), "unknown".to_owned());
    assert_eq!(roles.claims().await, [expected]);
}

#[tokio::test]
async fn the_weaker_role_is_refused_whatever_it_does_not_need() {
    let roles = Roles::set_up().await;
    let worker = roles.connect(&roles.worker()).await;
    let owner = roles.owner();
    let taking_over = format!("SET ROLE {owner}");
    let growing = format!("GRANT {owner} TO {}", roles.worker());
    for statement in [
        "UPDATE auth_user SET email = 'eve@example.com'",
        "UPDATE jobs_application SET status = 'hired'",
        "INSERT INTO jobs_company (name) VALUES ('Eve')",
        "DELETE FROM billing_order",
        "TRUNCATE jobs_job",
        "SELECT password FROM auth_user",
        "SELECT * FROM auth_user",
        "SELECT text FROM jobs_note",
        "DROP TABLE auth_user CASCADE",
        "ALTER TABLE jobs_job ADD COLUMN x int",
        "DROP TABLE processed_events",
        "ALTER TABLE processed_events ADD COLUMN x int",
        "ALTER TABLE processed_events DROP CONSTRAINT processed_events_outcome",
        "TRUNCATE processed_events",
        "TRUNCATE email_feedback",
        "CREATE INDEX ON processed_events (outcome)",
        "DROP INDEX processed_events_processed_at",
        "CREATE TRIGGER t BEFORE INSERT ON processed_events EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE TABLE onemail.x (id int)",
        "CREATE TABLE public.x (id int)",
        "CREATE SCHEMA x",
        "DROP SCHEMA onemail CASCADE",
        "SELECT * FROM onemail_migrations",
        "INSERT INTO onemail_migrations (version) VALUES (99)",
        "DELETE FROM onemail_migrations",
        taking_over.as_str(),
        growing.as_str(),
    ] {
        assert_denied(worker.batch_execute(statement).await, statement);
    }
}

#[tokio::test]
async fn the_owner_is_refused_what_is_the_job_boards() {
    let roles = Roles::set_up().await;
    let owner = roles.connect(&roles.owner()).await;
    for statement in [
        "SELECT email FROM public.auth_user",
        "UPDATE public.auth_user SET email = 'eve@example.com'",
        "DROP TABLE public.jobs_job CASCADE",
        "CREATE TABLE public.x (id int)",
    ] {
        assert_denied(owner.batch_execute(statement).await, statement);
    }
}

#[tokio::test]
async fn the_tables_of_later_migrations_need_no_grant_by_hand() {
    let roles = Roles::set_up().await;
    let owner = roles.connect(&roles.owner()).await;
    let later = "CREATE TABLE later (id int); ALTER TABLE processed_events ADD COLUMN later int";
    owner.batch_execute(later).await.expect("its own schema");

    let worker = roles.connect(&roles.worker()).await;
    let used = "INSERT INTO later VALUES (1); UPDATE later SET id = 2; SELECT id FROM later; DELETE FROM later; \
                SELECT later FROM processed_events";
    worker.batch_execute(used).await.expect("it is covered");
    assert_denied(
        worker.batch_execute("DROP TABLE later").await,
        "DROP TABLE later",
    );
}

#[tokio::test]
async fn the_weaker_role_cannot_migrate() {
    let roles = Roles::before_the_migration().await;

    let run = roles.migrate(&roles.worker()).await;

    assert!(!run.success, "{run:?}");
    assert!(run.stderr.contains("permission denied"), "{}", run.stderr);
}

#[tokio::test]
async fn a_role_that_does_not_see_the_ledger_is_told_of_the_missing_grant() {
    let roles = Roles::set_up().await;
    let worker = roles.worker();
    roles
        .execute(&format!("REVOKE USAGE ON SCHEMA onemail FROM {worker}"))
        .await;
    let ses = Ses::start().await;
    let sandbox = Sandbox::start(&Environment::notify(&roles.url(&worker), &ses)).await;

    sandbox
        .invoke(batch([Record::new("m-1", &interview("unseen"))]))
        .await
        .assert_failed(&["m-1"]);

    let line = sandbox
        .logs
        .wait_for("the refusal", |line| line.field("code") == "schema_too_old")
        .await;
    assert!(
        line.field("cause")
            .as_str()
            .is_some_and(|cause| cause.contains(&worker))
    );
    assert_eq!(roles.claims().await, []);
}

#[tokio::test]
async fn the_grant_for_iam_tokens_is_one_that_postgres_takes() {
    let roles = Roles::before_the_migration().await;
    // RDS has this role; elsewhere it stands for it. Another test run on the server may have made it.
    let rds = "DO $$ BEGIN CREATE ROLE rds_iam; \
               EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$";
    roles.execute(rds).await;

    roles.execute(&roles.statements("With IAM")).await;

    let query = format!(
        "SELECT pg_has_role('{}', 'rds_iam', 'member')",
        roles.worker()
    );
    let row = roles.administrator.query_one(&query, &[]).await;
    assert!(row.expect("one row").get::<_, bool>(0));
}

#[tokio::test]
async fn a_missing_grant_on_the_ledger_is_named() {
    let roles = Roles::set_up().await;
    let worker = roles.worker();
    roles
        .execute(&format!(
            "REVOKE ALL ON onemail.processed_events FROM {worker}"
        ))
        .await;
    let ses = Ses::start().await;
    let sandbox = Sandbox::start(&Environment::notify(&roles.url(&worker), &ses)).await;

    sandbox
        .invoke(batch([Record::new("m-1", &interview("ungranted"))]))
        .await
        .assert_failed(&["m-1"]);

    let line = sandbox.logs.outcome_of("ungranted").await;
    assert_eq!(line.level(), "ERROR");
    assert_eq!(line.field("code"), &Value::from("42501"));
    assert!(line.text.contains("processed_events"), "{}", line.text);
    ses.assert_requests(0);
}
