//! What the function tells SQS of messages that failed: when they come back, and which will never be sent.

use serde_json::{Value, json};

use crate::support::event::{Record, batch, interview, status_changed};
use crate::support::ses::Reply;
use crate::support::world::World;

/// A record received so many times.
fn received(times: u32, event_id: &str) -> Record {
    let attributes = json!({ "ApproximateReceiveCount": times.to_string() });
    Record::new(&format!("m-{event_id}"), &interview(event_id)).with("attributes", attributes)
}

/// A record of an event that can never be sent.
fn hopeless() -> Record {
    Record::new(
        "m-hopeless",
        &status_changed("hopeless", -1, "reviewing", "offer"),
    )
}

async fn world_with_dead_letters() -> World {
    World::start_with_sqs(|environment, sqs| {
        environment.with("DEAD_LETTER_QUEUE_URL", &sqs.queue_url("dead-letters"))
    })
    .await
}

#[tokio::test]
async fn a_failed_message_comes_back_the_later_the_more_often_it_was_received() {
    let world = World::start().await;
    world.ses.reply_always(Reply::refuse(
        400,
        "SendingPausedException",
        "Email sending is disabled.",
    ));

    let records = [received(1, "once"), received(4, "often")];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-once", "m-often"]);

    let (once, often) = (
        world.sqs.delays_of("m-once"),
        world.sqs.delays_of("m-often"),
    );
    assert_eq!((once.len(), often.len()), (1, 1), "each is told once");
    assert!(
        once[0] > 0 && often[0] > once[0] * 2,
        "{once:?} and {often:?} seconds"
    );
}

#[tokio::test]
async fn after_an_unknown_outcome_a_message_stays_away_for_as_long_as_ses_may_still_tell() {
    let world = World::start_with(|environment| environment.with("IN_DOUBT_WAIT", "345")).await;
    world.ses.reply_next(Reply::accept_without_reply());

    world
        .sandbox
        .invoke(batch([received(1, "unclear")]))
        .await
        .assert_failed(&["m-unclear"]);

    let delays = world.sqs.delays_of("m-unclear");
    assert!(delays.len() == 1 && delays[0] >= 345, "{delays:?} seconds");
}

#[tokio::test]
async fn of_messages_that_are_done_sqs_is_told_nothing() {
    let world = World::start().await;

    world
        .sandbox
        .invoke(batch([received(1, "done")]))
        .await
        .assert_none_failed();

    assert_eq!(world.sqs.delays_of("m-done"), Vec::<u64>::new());
    assert_eq!(world.sqs.messages(), Vec::<Value>::new());
}

#[tokio::test]
async fn an_sqs_that_denies_everything_changes_no_answer() {
    let world = world_with_dead_letters().await;
    world.sqs.deny_everything();
    world.ses.reply_to_event(
        "refused",
        Reply::refuse(400, "SendingPausedException", "Email sending is disabled."),
    );

    let records = [received(1, "sent"), received(1, "refused"), hopeless()];
    let answer = world.sandbox.invoke(batch(records)).await;

    // What could not be moved is reported, so that the redrive policy moves it.
    answer.assert_failed(&["m-refused", "m-hopeless"]);
    world.database.assert_claims(&[("sent", "sent")]).await;
}

#[tokio::test]
async fn what_can_never_be_sent_is_moved_with_the_reason_and_acknowledged() {
    let world = world_with_dead_letters().await;
    let attribute = json!({ "stringValue": "abc-123", "dataType": "String" });
    let broken_body = r#"{"type": "application.status_changed",  oops "#;
    let records = [
        hopeless().with_message_attribute("trace", attribute),
        Record::with_body("m-broken", broken_body),
        Record::new("m-good", &interview("good")),
    ];

    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    let messages = world.sqs.messages();
    let body_of = |message: &Value| message["MessageBody"].as_str().map(str::to_owned);
    let moved = |body: &str| {
        messages
            .iter()
            .find(|message| body_of(message).as_deref() == Some(body))
    };
    let hopeless_body = status_changed("hopeless", -1, "reviewing", "offer").to_string();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        moved(broken_body).is_some(),
        "a body was changed: {messages:?}"
    );
    let message = moved(&hopeless_body).expect("the body is as it came");
    assert_eq!(message["QueueUrl"], world.sqs.queue_url("dead-letters"));
    assert_eq!(
        message["MessageAttributes"]["trace"]["StringValue"],
        "abc-123"
    );
    let attributes = message["MessageAttributes"].to_string();
    assert!(
        attributes.contains("application_id"),
        "the reason isn't in {attributes}"
    );
    world.database.assert_claims(&[("good", "sent")]).await;
}

#[tokio::test]
async fn what_fails_for_a_passing_reason_is_not_moved() {
    let world = world_with_dead_letters().await;
    world.ses.reply_next(Reply::refuse(
        400,
        "SendingPausedException",
        "Email sending is disabled.",
    ));

    world
        .sandbox
        .invoke(batch([received(7, "paused")]))
        .await
        .assert_failed(&["m-paused"]);

    assert_eq!(world.sqs.messages(), Vec::<Value>::new());
}
