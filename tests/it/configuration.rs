//! A missing or malformed value stops the process at start with one line that names the variable.

use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::lambda::Sandbox;
use crate::support::ses::Ses;
use crate::support::world::World;

async fn good_environment() -> Environment {
    // Nobody connects: these processes end before they would.
    Environment::notify(
        "postgresql://worker:hunter2@127.0.0.1:9/jobs",
        &Ses::start().await,
    )
}

/// Asserts that `notify` doesn't start, and says why in one line with the variable's name.
async fn assert_refused(environment: &Environment, variable: &str, value: &str) {
    let sandbox = Sandbox::spawn("notify", environment).await;

    let status = sandbox.exited().await;

    let lines = sandbox.logs.to_the_end().await;
    assert!(!status.success(), "{variable}={value:?} was accepted");
    assert_eq!(
        lines.len(),
        1,
        "{variable}={value:?}: not one line:\n{}",
        sandbox.logs.text()
    );
    assert!(
        lines[0].text.contains(variable),
        "{variable}={value:?} isn't named in {}",
        lines[0].text
    );
    assert!(
        !lines[0].text.contains("hunter2"),
        "a password is in {}",
        lines[0].text
    );
    if let Some(error) = sandbox.init_error() {
        assert!(
            error.message.contains(variable),
            "{variable}: Lambda is told {error:?}"
        );
    }
}

#[tokio::test]
async fn a_missing_variable_stops_the_process_and_is_named() {
    for variable in ["DATABASE_URL", "MAIL_FROM"] {
        assert_refused(&good_environment().await.without(variable), variable, "").await;
        assert_refused(&good_environment().await.with(variable, ""), variable, "").await;
    }
}

#[tokio::test]
async fn a_malformed_variable_stops_the_process_and_is_named() {
    let malformed = [
        ("DATABASE_URL", "worker:hunter2@db.example.com"),
        ("DATABASE_URL", "mysql://worker:hunter2@db.example.com/jobs"),
        (
            "DATABASE_URL",
            "postgresql://worker:hunter2@db.example.com:port/jobs",
        ),
        (
            "DATABASE_URL",
            "postgresql://worker:hunter2@db.example.com/jobs?sslmode=sometimes",
        ),
        (
            "DATABASE_URL",
            "postgresql://worker:hunter2#@db.example.com/jobs",
        ),
        ("PGSSLMODE", "sometimes"),
        ("MAIL_FROM", "no-reply"),
        ("MAIL_FROM", "Job Board"),
        ("MAIL_FROM", "Job Board <no-reply>"),
        ("MAIL_FROM", "jörg@example.com"),
        ("MAIL_FROM", "a@example.com, b@example.com"),
        (
            "MAIL_FROM",
            "Job Board <no-reply@example.com>\r\nBcc: eve@example.net",
        ),
        ("MAIL_REPLY_TO", "support"),
        ("MAIL_REPLY_TO", "support@example.com;sales@example.com"),
        ("SES_MAX_SEND_RATE", "fast"),
        ("SES_MAX_SEND_RATE", "-1"),
        ("SES_MAX_SEND_RATE", "NaN"),
        ("CLAIM_MODE", "optimistic"),
        ("IN_DOUBT", "perhaps"),
        ("IN_DOUBT_WAIT", "soon"),
        ("IN_DOUBT_WAIT", "-1"),
        ("MAX_IN_FLIGHT", "0"),
        ("MAX_IN_FLIGHT", "-1"),
        ("MAX_IN_FLIGHT", "ten"),
        ("MAX_IN_FLIGHT", "1.5"),
        ("RECIPIENT_ALLOW_LIST", "example.com"),
        ("RECIPIENT_ALLOW_LIST", "@example.com,nobody"),
        ("RECIPIENT_ALLOW_LIST", "*@example.com"),
        (
            "RECIPIENT_ALLOW_LIST",
            "@example.com,two@example.com three@example.com",
        ),
    ];
    for (variable, value) in malformed {
        assert_refused(
            &good_environment().await.with(variable, value),
            variable,
            value,
        )
        .await;
    }
    let with_list = good_environment()
        .await
        .with("RECIPIENT_ALLOW_LIST", "@example.com");
    assert_refused(
        &with_list.with("RECIPIENT_REDIRECT", "team"),
        "RECIPIENT_REDIRECT",
        "team",
    )
    .await;
}

#[tokio::test]
async fn a_handler_that_does_not_exist_stops_the_process_and_the_four_are_listed() {
    for handler in ["", "bootstrap", "Notify", "notify.handler"] {
        let environment = good_environment().await.with("_HANDLER", handler);
        let sandbox = Sandbox::spawn("notify", &environment).await;

        let status = sandbox.exited().await;

        let lines = sandbox.logs.to_the_end().await;
        assert!(!status.success(), "{handler:?} was accepted");
        assert_eq!(lines.len(), 1, "{}", sandbox.logs.text());
        for function in ["notify", "feedback", "cleanup", "migrate"] {
            assert!(
                lines[0].text.contains(function),
                "no {function} in {}",
                lines[0].text
            );
        }
    }
}

#[tokio::test]
async fn migrate_needs_the_database_alone() {
    let world = World::start().await;

    let sandbox =
        Sandbox::start_function("migrate", &Environment::migrate(&world.database.url())).await;

    assert!(sandbox.try_invoke(serde_json::json!({})).await.is_ok());
}

#[tokio::test]
async fn a_password_in_the_url_is_percent_decoded() {
    let world = World::start().await;
    // The server asks for no password; that the URL is understood at all is what shows here.
    let url = world
        .database
        .url()
        .replace("@127.0.0.1", ":p%40ss%23w%2Frd@127.0.0.1");

    let sandbox = Sandbox::start(&Environment::notify(&url, &world.ses)).await;

    sandbox
        .invoke(batch([Record::new("m-1", &interview("encoded"))]))
        .await
        .assert_none_failed();
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let world = World::start().await;
    for mode in ["require", "verify-ca", "verify-full"] {
        let url = format!("{}?sslmode={mode}", world.database.url());
        let sandbox = Sandbox::start(&Environment::notify(&url, &world.ses)).await;
        sandbox
            .invoke(batch([Record::new("m-1", &interview("plain"))]))
            .await
            .assert_failed(&["m-1"]);
    }
    for mode in ["disable", "prefer"] {
        let environment = world.environment.clone().with("PGSSLMODE", mode);
        let sandbox = Sandbox::start(&environment).await;
        sandbox
            .invoke(batch([Record::new("m-1", &interview(mode))]))
            .await
            .assert_none_failed();
    }
    world.ses.assert_requests(2);
}
