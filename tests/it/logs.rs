//! Logs: each record ends in one line that an operator can use, and no line tells about a person.

use serde_json::json;

use crate::support::event::{Record, batch, interview, order_placed, status_changed};
use crate::support::logs::Line;
use crate::support::ses::Reply;
use crate::support::world::World;

/// A candidate whose name and address stand out in any text.
const NAME: &str = "Quirinius";
const FAMILY_NAME: &str = "Zwackelmann";
const ADDRESS: &str = "quirinius.zwackelmann@example.net";

#[track_caller]
fn assert_tells_about_nobody(lines: &[Line]) {
    let people = [
        NAME,
        FAMILY_NAME,
        "zwackelmann",
        "sam@example.com",
        "Backend Engineer",
        "@example.",
        "@müller",
    ];
    for line in lines {
        for person in people {
            assert!(
                !line.text.contains(person),
                "{person:?} is in {}",
                line.text
            );
        }
    }
}

#[tokio::test]
async fn a_sent_record_ends_in_one_line_with_what_an_operator_asks_for() {
    let world = World::start().await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("first"))]))
        .await
        .assert_none_failed();

    let line = world.sandbox.logs.outcome_of("first").await;
    assert_eq!(line.level(), "INFO");
    assert_eq!(line.outcome(), "sent");
    assert_eq!(line.field("event_type"), "application.status_changed");
    assert_eq!(line.field("message_id"), "m-1");
    assert_eq!(line.field("user_id"), 5);
    assert_eq!(line.field("application_id"), 3);
    assert_eq!(line.field("old_status"), "reviewing");
    assert_eq!(line.field("new_status"), "interview");
    assert!(line.field("elapsed_ms").is_number(), "{}", line.text);
    assert!(
        line.field("timestamp").is_string() && line.field("message").is_string(),
        "{}",
        line.text
    );
    world.sandbox.kill().await;
    let lines = world.sandbox.logs.to_the_end().await;
    let endings = lines
        .iter()
        .filter(|line| !line.outcome().is_empty())
        .count();
    assert_eq!(endings, 1, "{}", world.sandbox.logs.text());
}

#[tokio::test]
async fn every_record_ends_in_exactly_one_line() {
    let world = World::start().await;
    world
        .ses
        .reply_to_event("refused", Reply::refuse(400, "MessageRejected", "No."));
    let records = [
        Record::new("m-sent", &interview("sent")),
        Record::new("m-refused", &interview("refused")),
        Record::new(
            "m-gone",
            &status_changed("gone", 9999, "reviewing", "offer"),
        ),
        Record::with_body("m-poison", "poison"),
        Record::new("m-order", &order_placed(1001)),
    ];
    let message_ids = ["m-sent", "m-refused", "m-gone", "m-poison", "m-order"];

    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-refused", "m-poison"]);
    world.sandbox.kill().await;

    let lines = world.sandbox.logs.to_the_end().await;
    for message_id in message_ids {
        let endings = lines
            .iter()
            .filter(|line| line.field("message_id") == message_id && !line.outcome().is_empty())
            .count();
        assert_eq!(endings, 1, "lines that end {message_id}");
    }
}

#[tokio::test]
async fn in_lambda_every_line_is_json() {
    let world = World::start().await;
    world.ses.reply_to_event(
        "refused",
        Reply::refuse(500, "InternalServiceErrorException", "Try later."),
    );

    let records = [
        Record::new("m-1", &interview("sent")),
        Record::new("m-2", &interview("refused")),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-2"]);
    let _ = world.sandbox.try_invoke(json!({})).await;
    world.sandbox.kill().await;

    for line in world.sandbox.logs.to_the_end().await {
        assert!(!line.fields.is_empty(), "no JSON: {}", line.text);
        assert!(
            line.is_metric() || ["INFO", "WARN", "ERROR"].contains(&line.level()),
            "{}",
            line.text
        );
    }
}

/// Everything that can happen to the email of one person, at the most talkative level that Lambda can set.
#[tokio::test]
async fn no_address_name_or_body_is_ever_logged() {
    for level in ["INFO", "TRACE"] {
        let world =
            World::start_with(|environment| environment.with("AWS_LAMBDA_LOG_LEVEL", level)).await;
        let application = world
            .database
            .application_of(NAME, FAMILY_NAME, ADDRESS)
            .await;
        let broken = world
            .database
            .application_of(
                NAME,
                FAMILY_NAME,
                "zwackelmann@example.net, sam@example.com",
            )
            .await;
        let event =
            |event_id: &str| status_changed(event_id, application, "reviewing", "interview");
        // As SES words it, with whom it is about.
        let complaint = format!(
            "Email address is not verified. The following identities failed the check in region EU-WEST-1: \
             {NAME} {FAMILY_NAME} <{ADDRESS}>, \"{FAMILY_NAME}, {NAME}\" <{ADDRESS}>, {ADDRESS}"
        );
        world
            .ses
            .reply_to_event("refused", Reply::refuse(400, "MessageRejected", &complaint));
        world.ses.reply_to_event(
            "unclear",
            Reply::refuse(500, "InternalServiceErrorException", &complaint),
        );
        world
            .ses
            .reply_to_event("page", Reply::accept_and_answer(200, &complaint));
        world
            .ses
            .reply_to_event("nothing", Reply::accept_without_reply());

        let records = [
            Record::new("m-1", &event("sent")),
            Record::new("m-2", &event("sent")),
            Record::new("m-3", &event("refused")),
            Record::new("m-4", &event("unclear")),
            Record::new("m-5", &event("page")),
            Record::new("m-6", &event("nothing")),
            Record::new(
                "m-7",
                &status_changed("impossible", broken, "reviewing", "interview"),
            ),
        ];
        world.sandbox.invoke(batch(records)).await;
        world.sandbox.kill().await;

        let lines = world.sandbox.logs.to_the_end().await;
        assert!(lines.len() >= 7, "{}", world.sandbox.logs.text());
        assert_tells_about_nobody(&lines);
    }
}

#[tokio::test]
async fn what_is_wrong_with_an_event_is_logged_without_what_it_says() {
    let world = World::start().await;
    let mut with_text_for_a_number = interview("wrong-1");
    with_text_for_a_number["application_id"] = json!(ADDRESS);
    let mut with_name_for_a_status = interview("wrong-2");
    with_name_for_a_status["new_status"] =
        json!(format!("{NAME} {FAMILY_NAME} {}", "x".repeat(99)));
    let mut with_address_for_a_type = interview("wrong-3");
    with_address_for_a_type["type"] = json!(ADDRESS);
    let mut with_address_for_an_id = interview("wrong-4");
    with_address_for_an_id["event_id"] = json!(format!("{ADDRESS} {NAME}"));
    let records = [
        Record::new("m-1", &with_text_for_a_number),
        Record::new("m-2", &with_name_for_a_status),
        Record::new("m-3", &with_address_for_a_type),
        Record::new("m-4", &with_address_for_an_id),
        Record::with_body("m-5", &format!("To: {NAME} <{ADDRESS}>")),
        Record::with_body("m-6", &format!(r#""{ADDRESS}""#)),
        Record::with_body("m-7", &format!(r#"{{"{ADDRESS}": }}"#)),
    ];

    let answer = world.sandbox.invoke(batch(records)).await;
    world.sandbox.kill().await;

    assert_eq!(answer.failed.len(), 7);
    assert_tells_about_nobody(&world.sandbox.logs.to_the_end().await);
}

#[tokio::test]
async fn an_error_of_postgres_is_logged_without_the_values_that_it_quotes() {
    let world = World::start().await;
    // A view in the table's place, whose function fails with what a person is called.
    let quoting = format!(
        "ALTER TABLE auth_user RENAME TO real_user; \
         CREATE FUNCTION fail() RETURNS text LANGUAGE plpgsql AS $$ BEGIN \
           RAISE EXCEPTION 'value too long: {ADDRESS}' \
           USING DETAIL = 'Key (email)=({ADDRESS}) of {NAME}', HINT = '{FAMILY_NAME}'; END $$; \
         CREATE VIEW auth_user AS SELECT id, fail() AS email, first_name, last_name FROM real_user"
    );
    world.database.execute(&quoting).await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("quoted"))]))
        .await
        .assert_failed(&["m-1"]);

    let line = world.sandbox.logs.outcome_of("quoted").await;
    assert!(
        line.text.contains("P0001"),
        "the error's code isn't in {}",
        line.text
    );
    world.sandbox.kill().await;
    assert_tells_about_nobody(&world.sandbox.logs.to_the_end().await);
}

#[tokio::test]
async fn credentials_are_never_logged() {
    let world = World::start_with(|environment| {
        let url = environment_url_with_password(&environment);
        environment
            .with("DATABASE_URL", &url)
            .with("AWS_LAMBDA_LOG_LEVEL", "TRACE")
    })
    .await;
    world.ses.reply_next(Reply::refuse(
        403,
        "SignatureDoesNotMatch",
        "The request signature does not match.",
    ));

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("secret"))]))
        .await
        .assert_failed(&["m-1"]);
    world.sandbox.kill().await;

    let lines = world.sandbox.logs.to_the_end().await;
    for line in &lines {
        for secret in ["wJalrXUtnFEMI", "session-token-EXAMPLE", "hunter2"] {
            assert!(!line.text.contains(secret), "{}", line.text);
        }
    }
}

/// The server trusts whoever connects, so that any password does.
fn environment_url_with_password(environment: &crate::support::environment::Environment) -> String {
    environment
        .value("DATABASE_URL")
        .replace("@127.0.0.1", ":hunter2@127.0.0.1")
}

#[tokio::test]
async fn lines_below_the_level_that_lambda_sets_are_not_written() {
    let world =
        World::start_with(|environment| environment.with("AWS_LAMBDA_LOG_LEVEL", "WARN")).await;

    let records = [
        Record::new("m-1", &interview("sent")),
        Record::new("m-2", &status_changed("gone", 9999, "reviewing", "offer")),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();
    world.sandbox.kill().await;

    let lines = world.sandbox.logs.to_the_end().await;
    let for_people = lines.iter().filter(|line| !line.is_metric());
    let outcomes: Vec<&str> = for_people.map(Line::outcome).collect();
    assert_eq!(outcomes, ["skipped"], "{}", world.sandbox.logs.text());
}

#[tokio::test]
async fn in_lambdas_text_format_lines_are_readable_and_tell_the_same() {
    let world =
        World::start_with(|environment| environment.with("AWS_LAMBDA_LOG_FORMAT", "Text")).await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("readable"))]))
        .await
        .assert_none_failed();

    let line = world
        .sandbox
        .logs
        .wait_for("the outcome", |line| line.text.contains("readable"))
        .await;
    assert!(line.fields.is_empty(), "{}", line.text);
    for part in ["INFO", "sent", "application.status_changed", "m-1"] {
        assert!(line.text.contains(part), "no {part} in {}", line.text);
    }
}
