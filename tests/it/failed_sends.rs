//! A send that SES did not accept, or of which nobody learnt whether it did: nothing is settled, and the retry sends.

use crate::support::environment::NOWHERE;
use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::proxy::End;
use crate::support::ses::Reply;
use crate::support::world::World;

#[tokio::test]
async fn a_failed_send_leaves_no_claim_and_the_retry_sends() {
    let world = World::start().await;
    let event = batch([Record::new("m-1", &interview("retried"))]);
    world.ses.reply_next(Reply::refuse(
        400,
        "SendingPausedException",
        "Email sending is disabled.",
    ));

    world
        .sandbox
        .invoke(event.clone())
        .await
        .assert_failed(&["m-1"]);
    world.database.assert_claims(&[]).await;
    world.sandbox.invoke(event).await.assert_none_failed();

    world.ses.assert_emails(1);
    world.database.assert_claims(&[("retried", "sent")]).await;
}

#[tokio::test]
async fn whatever_error_ses_answers_the_record_is_reported_and_nothing_is_settled() {
    let world = World::start().await;
    let errors = [
        (400, "AccountSuspendedException"),
        (400, "BadRequestException"),
        (400, "LimitExceededException"),
        (400, "MailFromDomainNotVerifiedException"),
        (400, "MessageRejected"),
        (404, "NotFoundException"),
        (400, "SendingPausedException"),
        (429, "TooManyRequestsException"),
        (400, "Throttling"),
        (403, "AccessDeniedException"),
        (403, "ExpiredTokenException"),
        (403, "SignatureDoesNotMatch"),
        (500, "InternalServiceErrorException"),
        (503, "ServiceUnavailable"),
        (400, "SomethingNew"),
    ];
    for (status, error_type) in errors {
        let event_id = format!("refused-{error_type}");
        world
            .ses
            .reply_always(Reply::refuse(status, error_type, "Not this one."));

        world
            .sandbox
            .invoke(batch([Record::new("m-1", &interview(&event_id))]))
            .await
            .assert_failed(&["m-1"]);

        let line = world.sandbox.logs.outcome_of(&event_id).await;
        assert!(
            line.text.contains(error_type),
            "the error's code isn't in {}",
            line.text
        );
        assert!(
            line.text.contains("Not this one."),
            "the error's message isn't in {}",
            line.text
        );
    }
    let unknown = ["InternalServiceErrorException", "ServiceUnavailable"];
    let unknown = unknown.map(|error_type| format!("refused-{error_type}"));
    world
        .assert_claims_and_doubts(&[], &unknown.each_ref().map(String::as_str))
        .await;
}

#[tokio::test]
async fn an_error_whose_type_is_in_the_body_is_shown_with_its_code() {
    let world = World::start().await;
    world.ses.reply_next(Reply::refuse_in_body(
        400,
        "MessageRejected",
        "Not this one.",
    ));

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("refused"))]))
        .await
        .assert_failed(&["m-1"]);

    let line = world.sandbox.logs.outcome_of("refused").await;
    assert!(line.text.contains("MessageRejected"), "{}", line.text);
}

/// The SDK would try again by itself, and SES would send again.
#[tokio::test]
async fn a_send_of_unknown_outcome_is_one_request_and_the_record_is_reported() {
    let world = World::start().await;
    let replies = [
        (
            "connection closed without a reply",
            Reply::accept_without_reply(),
        ),
        ("half a reply", Reply::accept_with_half_a_reply()),
        (
            "a success without a message id",
            Reply::accept_and_answer(200, "{}"),
        ),
        (
            "a success with an empty message id",
            Reply::accept_and_answer(200, r#"{"MessageId":""}"#),
        ),
        (
            "a success that is a web page",
            Reply::accept_and_answer(200, "<html>Welcome</html>"),
        ),
        ("a success that is empty", Reply::accept_and_answer(200, "")),
        (
            "500 after it was accepted",
            Reply::accept_and_answer(500, "{}"),
        ),
        (
            "502 after it was accepted",
            Reply::accept_and_answer(502, "<html>Bad Gateway</html>"),
        ),
        (
            "503 before it was accepted",
            Reply::accept_and_answer(503, "{}").not_accepted(),
        ),
        (
            "504 after it was accepted",
            Reply::accept_and_answer(504, ""),
        ),
    ];
    let event_ids: Vec<String> = (0..replies.len())
        .map(|number| format!("unknown-{number}"))
        .collect();
    for (number, (what, reply)) in replies.into_iter().enumerate() {
        let event_id = &event_ids[number];
        world.ses.reply_next(reply);

        let answer = world
            .sandbox
            .invoke(batch([Record::new("m-1", &interview(event_id))]))
            .await;

        assert_eq!(answer.failed, ["m-1"], "{what}");
        assert_eq!(
            world.ses.requests().len(),
            number + 1,
            "requests after: {what}"
        );
    }
    let unknown: Vec<&str> = event_ids.iter().map(String::as_str).collect();
    world.assert_claims_and_doubts(&[], &unknown).await;
}

#[tokio::test]
async fn a_reply_that_was_lost_does_not_hinder_the_next_send() {
    let world = World::start().await;
    world.ses.reply_next(Reply::accept_without_reply());

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("lost"))]))
        .await
        .assert_failed(&["m-1"]);
    world
        .sandbox
        .invoke(batch([Record::new("m-2", &interview("next"))]))
        .await
        .assert_none_failed();

    world
        .assert_claims_and_doubts(&[("next", "sent")], &["lost"])
        .await;
}

#[tokio::test]
async fn while_ses_cannot_be_reached_records_are_reported_and_no_claim_is_left() {
    let world = World::start().await;
    let environment = world
        .environment
        .clone()
        .with("AWS_ENDPOINT_URL_SESV2", NOWHERE);
    let sandbox = Sandbox::start(&environment).await;

    sandbox
        .invoke(batch([Record::new("m-1", &interview("unreachable"))]))
        .await
        .assert_failed(&["m-1"]);

    world.database.assert_claims(&[]).await;
}

#[tokio::test]
async fn without_credentials_records_are_reported_and_no_claim_is_left() {
    let world = World::start().await;
    let environment = world
        .environment
        .clone()
        .without("AWS_ACCESS_KEY_ID")
        .without("AWS_SECRET_ACCESS_KEY")
        .without("AWS_SESSION_TOKEN")
        .with("AWS_EC2_METADATA_DISABLED", "true");
    let sandbox = Sandbox::start(&environment).await;

    sandbox
        .invoke(batch([Record::new("m-1", &interview("nobody"))]))
        .await
        .assert_failed(&["m-1"]);

    world.ses.assert_requests(0);
    world.database.assert_claims(&[]).await;
}

#[tokio::test]
async fn while_postgres_is_away_records_are_reported_and_nothing_is_sent() {
    let (world, proxy) = World::start_with_proxy().await;
    let event = batch([Record::new("m-1", &interview("later"))]);
    proxy.refuse_connections().await;

    world
        .sandbox
        .invoke(event.clone())
        .await
        .assert_failed(&["m-1"]);
    world.ses.assert_requests(0);
    proxy.take_connections().await;
    world.sandbox.invoke(event).await.assert_none_failed();

    world.ses.assert_emails(1);
}

/// After a failover a pool can go on using connections to what has become a read-only replica.
#[tokio::test]
async fn a_read_only_postgres_costs_a_retry_on_another_connection() {
    let world = World::start().await;
    let event = batch([Record::new("m-1", &interview("failover"))]);
    let read_only = |value: &str| {
        format!("ALTER ROLE CURRENT_USER SET default_transaction_read_only = {value}")
    };

    world.database.execute(&read_only("on")).await;
    let sandbox = world.another_sandbox().await;
    sandbox.invoke(event.clone()).await.assert_failed(&["m-1"]);
    world.ses.assert_requests(0);
    // Only new sessions see the change: the function must have let go of its own.
    world.database.execute(&read_only("off")).await;
    sandbox.invoke(event).await.assert_none_failed();

    world.ses.assert_emails(1);
    let line = sandbox.logs.outcome_of("failover").await;
    assert!(line.text.contains("25006"), "{}", line.text);
}

#[tokio::test]
async fn an_error_of_postgres_is_shown_with_its_code() {
    let world = World::start().await;
    world
        .sandbox
        .invoke(batch([Record::new("m-0", &interview("warm-up"))]))
        .await
        .assert_none_failed();
    world
        .database
        .execute("DROP TABLE jobs_application CASCADE")
        .await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("no-table"))]))
        .await
        .assert_failed(&["m-1"]);

    world.ses.assert_requests(1);
    let line = world.sandbox.logs.outcome_of("no-table").await;
    assert!(
        line.text.contains("42P01") && line.text.contains("jobs_application"),
        "{}",
        line.text
    );
}

#[tokio::test]
async fn two_rows_for_one_recipient_are_refused_before_the_send() {
    let world = World::start().await;
    // A view in the table's place, that has each candidate twice.
    let doubled = "ALTER TABLE jobs_candidate RENAME TO one_candidate; \
                   CREATE VIEW jobs_candidate AS SELECT * FROM one_candidate UNION ALL SELECT * FROM one_candidate";
    world.database.execute(doubled).await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("ambiguous"))]))
        .await
        .assert_failed(&["m-1"]);

    world.ses.assert_requests(0);
    world.database.assert_claims(&[]).await;
}

/// In transaction mode, between two attempts at a throttled send: the key is free by then, and another worker may be sending.
#[tokio::test]
async fn a_send_is_not_tried_again_without_its_claim() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Transaction).await;
    let throttled = Gate::closed();
    world.ses.reply_next(
        Reply::refuse(
            429,
            "TooManyRequestsException",
            "Maximum sending rate exceeded.",
        )
        .after(&throttled),
    );

    let running = world
        .sandbox
        .begin(batch([Record::new("m-1", &interview("lost-claim"))]));
    world.ses.received(1).await;
    proxy.end_connections(End::Reset).await;
    throttled.open();

    running.answer().await.assert_failed(&["m-1"]);
    world.ses.assert_requests(1);
    let line = world.sandbox.logs.outcome_of("lost-claim").await;
    assert_eq!(line.field("code"), "claim_lost");
}
