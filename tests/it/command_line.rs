//! The binary run by hand.

use serde_json::{Value, json};

use crate::support::by_hand;
use crate::support::database::Database;
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::ses::{Reply, Ses};

struct Desk {
    database: Database,
    ses: Ses,
    environment: Environment,
}

impl Desk {
    async fn set() -> Self {
        let database = Database::create().await;
        let ses = Ses::start().await;
        let environment = Environment::notify(&database.url(), &ses);
        Self {
            database,
            ses,
            environment,
        }
    }
}

fn answer(stdout: &str) -> Value {
    serde_json::from_str(stdout)
        .unwrap_or_else(|_| panic!("standard output is not the answer alone: {stdout:?}"))
}

#[tokio::test]
async fn an_event_from_standard_input_is_handled_and_the_answer_printed() {
    let desk = Desk::set().await;
    let event = batch([Record::new("m-1", &interview("by-hand"))]);

    let run = by_hand::run(&desk.environment, &["notify", "-"], &event.to_string()).await;

    assert!(run.success, "{run:?}");
    assert_eq!(answer(&run.stdout), json!({ "batchItemFailures": [] }));
    assert!(
        run.stderr.contains("by-hand") && run.stderr.contains("sent"),
        "{}",
        run.stderr
    );
    desk.ses.assert_emails(1);
    desk.database.assert_claims(&[("by-hand", "sent")]).await;
}

#[tokio::test]
async fn an_event_from_a_file_is_handled_and_the_answer_printed() {
    let desk = Desk::set().await;
    desk.ses
        .reply_next(Reply::refuse(400, "MessageRejected", "No."));
    let file = std::env::temp_dir().join(format!("onemail-by-hand-{}.json", std::process::id()));
    std::fs::write(
        &file,
        batch([Record::new("m-1", &interview("by-hand"))]).to_string(),
    )
    .expect("a writable directory");

    let run = by_hand::run(
        &desk.environment,
        &["notify", file.to_str().expect("UTF-8")],
        "",
    )
    .await;
    std::fs::remove_file(file).expect("it is still there");

    assert_eq!(
        answer(&run.stdout),
        json!({ "batchItemFailures": [{ "itemIdentifier": "m-1" }] })
    );
}

#[tokio::test]
async fn outside_lambda_lines_are_readable() {
    let desk = Desk::set().await;
    let event = batch([Record::new("m-1", &interview("by-hand"))]);

    let run = by_hand::run(&desk.environment, &["notify", "-"], &event.to_string()).await;

    for line in run.stderr.lines() {
        assert!(
            serde_json::from_str::<serde_json::Map<String, Value>>(line).is_err(),
            "JSON: {line}"
        );
    }
}

#[tokio::test]
async fn rust_log_sets_the_level_outside_lambda() {
    let desk = Desk::set().await;
    let event = batch([Record::new("m-1", &interview("by-hand"))]);

    let quiet = desk.environment.clone().with("RUST_LOG", "error");
    let run = by_hand::run(&quiet, &["notify", "-"], &event.to_string()).await;

    assert!(run.success, "{run:?}");
    assert_eq!(run.stderr, "");
}

#[tokio::test]
async fn what_cannot_be_run_ends_with_an_error_and_without_an_answer() {
    let desk = Desk::set().await;
    let runs: [(&[&str], &str, &str); 6] = [
        (
            &["notify", "/nonexistent/event.json"],
            "",
            "/nonexistent/event.json",
        ),
        (&["notify", "-"], "not json", "JSON"),
        (&["notify", "-"], "{}", "SQS"),
        (&["send", "-"], "{}", "migrate"),
        (&[], "", "migrate"),
        (&["notify"], "", "notify"),
    ];
    for (arguments, input, expected) in runs {
        let run = by_hand::run(&desk.environment, arguments, input).await;

        assert!(!run.success, "{arguments:?}: {run:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
        assert!(
            run.stderr.contains(expected),
            "{arguments:?}: no {expected:?} in {}",
            run.stderr
        );
    }
}

#[tokio::test]
async fn a_missing_variable_is_named_by_hand_too() {
    let desk = Desk::set().await;

    let run = by_hand::run(
        &desk.environment.without("MAIL_FROM"),
        &["notify", "-"],
        "{}",
    )
    .await;

    assert!(!run.success && run.stderr.contains("MAIL_FROM"), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}
