//! What a secret may say, and what `DATABASE_URL` says beside it.

use serde_json::{Value, json};

use crate::support::database::{server_port, shared_name};
use crate::support::secrets_manager::Mood;

use super::secret::Stage;

type Change = fn(&mut Value);

/// A worker whose secret was changed so, with this URL beside it, if any; `PORT` and `DATABASE` in it are replaced.
async fn stage(url: &str, change: Change) -> Stage {
    let url = url
        .replace("PORT", &server_port().to_string())
        .replace("DATABASE", &shared_name());
    Stage::start_with(
        |mut secret| {
            change(&mut secret);
            secret
        },
        |environment, _| environment.with("DATABASE_URL", &url),
    )
    .await
}

fn without(secret: &mut Value, keys: &[&str]) {
    let fields = secret.as_object_mut().expect("it is an object");
    fields.retain(|name, _| !keys.contains(&name.as_str()));
}

#[tokio::test]
async fn the_port_may_be_a_number_or_a_string() {
    let stage = stage("", |secret| {
        secret["port"] = secret["port"].to_string().into()
    })
    .await;

    stage.send_one("text").await;
}

#[tokio::test]
async fn what_a_secret_of_a_master_user_leaves_out_is_in_the_url() {
    for url in [
        "postgres://127.0.0.1:PORT/DATABASE",
        "postgresql://127.0.0.1:PORT/DATABASE?sslmode=disable",
        // Of the URL neither user nor password counts.
        "postgres://nobody:nothing@127.0.0.1:PORT/DATABASE",
    ] {
        let stage = stage(url, |secret| without(secret, &["host", "port", "dbname"])).await;
        stage.send_one("partly").await;
    }
}

#[tokio::test]
async fn the_url_says_where_and_the_secret_says_who() {
    let elsewhere: Change = |secret| {
        secret["host"] = "db.invalid".into();
        secret["port"] = 1.into();
        secret["dbname"] = "elsewhere".into();
    };
    let stage = stage("postgres://127.0.0.1:PORT/DATABASE", elsewhere).await;

    stage.send_one("proxied").await;
}

#[tokio::test]
async fn a_url_without_a_host_leaves_it_to_the_secret() {
    let stage = stage("postgres:///DATABASE?application_name=ours", |secret| {
        without(secret, &["dbname"]);
    })
    .await;

    stage.send_one("named").await;

    let ours = "SELECT count(*) FROM pg_stat_activity \
                WHERE usename = current_user AND application_name = 'ours'";
    stage
        .database
        .until("a session with the URL's name", ours, 1)
        .await;
}

#[tokio::test]
async fn a_secret_that_is_not_what_rds_writes_is_ours_to_fix_and_is_not_shown() {
    let cases: [(Change, &str); 11] = [
        (|secret| without(secret, &["username"]), "`username`"),
        (|secret| without(secret, &["password"]), "`password`"),
        (|secret| without(secret, &["host"]), "`host`"),
        (|secret| without(secret, &["dbname"]), "`dbname`"),
        (|secret| secret["dbname"] = "".into(), "`dbname`"),
        (
            |secret| secret["password"] = 77_117_711.into(),
            "`password`",
        ),
        (|secret| secret["port"] = "hunter2".into(), "`port`"),
        (|secret| secret["port"] = 65_536.into(), "`port`"),
        (|secret| secret["sslmode"] = "hunter2".into(), "`sslmode`"),
        (|secret| *secret = json!(["hunter2"]), "no JSON object"),
        (
            |secret| *secret = "postgres://worker:hunter2@db/jobs".into(),
            "no JSON object",
        ),
    ];
    for (change, named) in cases {
        let stage = stage("", change).await;

        let line = stage.release_one("malformed").await;

        assert_eq!(line.field("reason"), "database_setup", "{named}");
        assert_eq!(line.field("code"), "malformed_secret", "{named}");
        assert_eq!(line.level(), "ERROR", "{named}");
        assert!(line.text.contains("DATABASE_SECRET_ARN"), "{}", line.text);
        assert!(line.text.contains(named), "{named}: {}", line.text);
        let logs = stage.sandbox.logs.text();
        for secret in ["hunter2", "77117711"] {
            assert!(!logs.contains(secret), "{named}: {logs}");
        }
        assert_eq!(stage.secrets.requests(), 1, "{named}");
    }
}

#[tokio::test]
async fn a_secret_that_is_no_text_is_ours_to_fix_and_is_read_again() {
    let stage = Stage::start().await;
    stage.secrets.put_binary();
    let line = stage.release_one("binary").await;
    assert_eq!(line.field("code"), "malformed_secret");

    stage.secrets.put_text("{\"username\":");
    let line = stage.release_one("cut").await;
    assert_eq!(line.field("code"), "malformed_secret");

    stage
        .secrets
        .put(&super::secret::secret(&stage.database, "first"));
    stage.secrets.turn(Mood::Obliging);
    stage.send_one("mended").await;
}

#[tokio::test]
async fn what_the_secret_says_of_tls_counts_unless_the_url_says_otherwise() {
    let stage_with = |url: &'static str| stage(url, |secret| secret["sslmode"] = "require".into());

    let refused = stage_with("").await;
    let line = refused.release_one("plain").await;
    assert!(line.text.contains("does not support TLS"), "{}", line.text);

    let allowed = stage_with("postgres://127.0.0.1:PORT/DATABASE?sslmode=disable").await;
    allowed.send_one("plain").await;
}
