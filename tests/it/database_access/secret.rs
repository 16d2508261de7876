//! The second way: user and password in Secrets Manager, where they change while the sandbox is warm.

use serde_json::{Value, json};

use crate::support::by_hand;
use crate::support::database::{Database, server_port, shared_name};
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::lambda::{Running, Sandbox};
use crate::support::logs::Line;
use crate::support::secrets_manager::{ARN, Mood, SecretsManager};
use crate::support::ses::{Reply, Ses};
use crate::support::sqs::Sqs;

/// So many records run at once, and need as many connections.
const AT_ONCE: usize = 4;

/// A worker whose password is in a secret.
pub struct Stage {
    pub database: Database,
    pub secrets: SecretsManager,
    pub ses: Ses,
    pub sandbox: Sandbox,
    pub environment: Environment,
}

/// As RDS writes it, with keys that say nothing to us.
pub fn secret(database: &Database, password: &str) -> Value {
    json!({
        "username": database.name(),
        "password": password,
        "engine": "postgres",
        "host": "127.0.0.1",
        "port": server_port(),
        "dbname": shared_name(),
        "dbInstanceIdentifier": "job-board",
        "masterarn": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:master-AbCdEf",
    })
}

impl Stage {
    pub async fn start() -> Self {
        Self::start_with(|secret| secret, |environment, _| environment).await
    }

    pub async fn start_with(
        change_secret: impl FnOnce(Value) -> Value,
        change: impl FnOnce(Environment, &Database) -> Environment,
    ) -> Self {
        let database = Database::create().await;
        database.set_password("first").await;
        let secrets = SecretsManager::start(&change_secret(secret(&database, "first"))).await;
        let ses = Ses::start().await;
        let environment = Environment::notify("", &ses)
            .with("DATABASE_SECRET_ARN", ARN)
            .with("AWS_ENDPOINT_URL_SECRETS_MANAGER", &secrets.url())
            .with("AWS_ENDPOINT_URL_SQS", &Sqs::start().await.url());
        let environment = change(environment, &database);
        let sandbox = Sandbox::start(&environment).await;
        Self {
            database,
            secrets,
            ses,
            sandbox,
            environment,
        }
    }

    /// The password changes in Postgres and in the secret, and no session outlives the old one.
    async fn rotate(&self, password: &str) {
        self.database.set_password(password).await;
        self.secrets.put(&secret(&self.database, password));
        self.database.end_other_sessions().await;
    }

    /// Hands over a batch whose records run at once.
    fn begin_several(&self, name: &str) -> (Running, Gate) {
        let gate = Gate::closed();
        self.ses.reply_always(Reply::accept().after(&gate));
        let event_ids = (1..=AT_ONCE).map(|number| format!("{name}-{number}"));
        let records = event_ids.map(|id| Record::new(&format!("m-{id}"), &interview(&id)));
        (self.sandbox.begin(batch(records)), gate)
    }

    /// Has them all sent: as many connections are open at one moment.
    async fn send_several(&self, name: &str) {
        let before = self.ses.requests().len();
        let (running, gate) = self.begin_several(name);
        self.ses.received(before + AT_ONCE).await;
        gate.open();
        running.answer().await.assert_none_failed();
        self.ses.assert_emails(before + AT_ONCE);
    }

    /// Has one event handled that comes back, and gives its line.
    pub async fn release_one(&self, event_id: &str) -> Line {
        self.sandbox
            .invoke(batch([Record::new("m-1", &interview(event_id))]))
            .await
            .assert_failed(&["m-1"]);
        self.sandbox.logs.outcome_of(event_id).await
    }

    pub async fn send_one(&self, event_id: &str) {
        let before = self.ses.emails().len();
        self.ses.reply_always(Reply::accept());
        self.sandbox
            .invoke(batch([Record::new("m-1", &interview(event_id))]))
            .await
            .assert_none_failed();
        self.ses.assert_emails(before + 1);
    }

    fn assert_nothing_came_back(&self) {
        let lines = self.sandbox.logs.lines();
        let released = lines.iter().filter(|line| line.outcome() == "released");
        assert_eq!(released.count(), 0, "{}", self.sandbox.logs.text());
    }
}

#[tokio::test]
async fn connections_that_are_opened_at_once_share_one_request_for_the_secret() {
    let stage = Stage::start().await;
    assert_eq!(stage.secrets.requests(), 0, "asked at start");

    stage.send_several("first").await;

    assert_eq!(stage.secrets.requests(), 1);
}

#[tokio::test]
async fn the_secret_is_kept_while_the_sandbox_is_warm() {
    let stage = Stage::start().await;
    stage.send_several("first").await;
    // Not even the sessions need to live.
    stage.database.end_other_sessions().await;
    stage.secrets.turn(Mood::Silent);

    stage.send_several("second").await;

    assert_eq!(stage.secrets.requests(), 1);
    stage.assert_nothing_came_back();
}

#[tokio::test]
async fn a_rotation_while_warm_costs_one_request_and_no_record() {
    let stage = Stage::start().await;
    stage.send_several("first").await;

    for (count, name, password) in [(2, "second", "s3cond"), (3, "third", "th#ird@%/")] {
        stage.rotate(password).await;
        stage.send_several(name).await;
        assert!(!stage.sandbox.logs.text().contains(password));
        assert_eq!(stage.secrets.requests(), count);
    }

    stage.assert_nothing_came_back();
}

#[tokio::test]
async fn a_rotation_to_another_user_costs_no_record_either() {
    let stage = Stage::start().await;
    stage.send_several("first").await;
    let other = format!("{}_clone", stage.database.name());
    let schema = stage.database.name();
    let create = format!(
        "CREATE ROLE {other} SUPERUSER LOGIN PASSWORD 'second'; \
         GRANT asked_for_password TO {other}; ALTER ROLE {other} SET search_path = {schema}"
    );
    stage.database.execute(&create).await;
    let mut rotated = secret(&stage.database, "second");
    rotated["username"] = other.into();

    stage.database.set_password("out of use").await;
    stage.secrets.put(&rotated);
    stage.database.end_other_sessions().await;
    stage.send_several("second").await;

    assert_eq!(stage.secrets.requests(), 2);
    stage.assert_nothing_came_back();
}

#[tokio::test]
async fn a_rotation_does_not_touch_connections_that_are_open() {
    let stage = Stage::start().await;
    stage.send_several("first").await;
    stage.database.set_password("second").await;
    stage
        .secrets
        .turn(Mood::Refusing(500, "InternalServiceError"));

    stage.send_several("second").await;

    assert_eq!(stage.secrets.requests(), 1);
    stage.assert_nothing_came_back();
}

#[tokio::test]
async fn a_rotation_with_a_slow_secrets_manager_is_waited_for() {
    let stage = Stage::start().await;
    stage.send_several("first").await;
    stage.rotate("second").await;
    let slow = Gate::closed();
    stage.secrets.turn(Mood::Slow(slow.clone()));

    let (running, gate) = stage.begin_several("second");
    stage.secrets.asked(2).await;
    slow.open();
    stage.ses.received(2 * AT_ONCE).await;
    gate.open();

    running.answer().await.assert_none_failed();
    assert_eq!(stage.secrets.requests(), 2);
    stage.assert_nothing_came_back();
}

#[tokio::test]
async fn a_rotation_while_secrets_manager_is_down_comes_back_until_it_is_up() {
    let stage = Stage::start().await;
    stage.send_one("first").await;
    stage.rotate("second").await;
    stage
        .secrets
        .turn(Mood::Refusing(503, "ServiceUnavailable"));

    let line = stage.release_one("second").await;

    assert_eq!(line.field("reason"), "database");
    assert_eq!(line.level(), "WARN");
    assert_eq!(line.field("code"), "ServiceUnavailable");
    stage.secrets.turn(Mood::Obliging);
    stage.send_one("third").await;
    stage.ses.assert_emails(2);
}

/// Between the two steps of a rotation the secret still has what Postgres refuses.
#[tokio::test]
async fn a_password_that_the_secret_does_not_cure_is_ours_to_fix_and_asked_for_a_few_times_only() {
    let stage = Stage::start().await;
    stage.database.set_password("second").await;

    let line = stage.release_one("half-way").await;

    assert_eq!(line.field("reason"), "database_setup");
    assert_eq!(line.field("code"), "28P01");
    assert_eq!(line.level(), "ERROR");
    // Once for the first connection, and again when Postgres has refused each of three.
    assert_eq!(stage.secrets.requests(), 4);
    stage.secrets.put(&secret(&stage.database, "second"));
    stage.send_one("rotated").await;
    assert_eq!(stage.secrets.requests(), 5);
}

#[tokio::test]
async fn feedback_and_migrate_take_the_secret_too() {
    let stage = Stage::start().await;

    let run = by_hand::run(&stage.environment, &["migrate", "-"], "{}").await;
    assert!(run.success, "{run:?}");
    let notification = json!({
        "eventType": "Send",
        "mail": { "timestamp": "2026-01-01T12:00:00.000Z", "messageId": "0102018c7f3a5b2c-1-000000", "tags": {} },
        "send": {},
    });
    let payload = batch([Record::new("m-1", &notification)]).to_string();
    let run = by_hand::run(&stage.environment, &["feedback", "-"], &payload).await;
    assert!(run.success, "{run:?}");
    assert_eq!(run.stdout.trim(), r#"{"batchItemFailures":[]}"#, "{run:?}");

    assert_eq!(stage.secrets.requests(), 2);
    assert_eq!(stage.database.told().await.len(), 1);
}
