//! The batch: each record is on its own, and the answer tells exactly which are to come back.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::event::{Record, batch, interview, order_placed, status_changed};
use crate::support::gate::Gate;
use crate::support::lambda::{AMPLE_FOR_MANY, Failure};
use crate::support::ses::Reply;
use crate::support::world::World;

/// Bodies from which no event can be read.
fn undecodable_bodies() -> Vec<(&'static str, String)> {
    vec![
        ("empty", String::new()),
        ("no JSON", "not json".to_owned()),
        (
            "half a JSON",
            r#"{"type": "application.status_changed""#.to_owned(),
        ),
        ("more after the JSON", format!("{} {{}}", interview("more"))),
        ("null", "null".to_owned()),
        ("a number", "7".to_owned()),
        ("a list", "[]".to_owned()),
        ("a string", r#""application.status_changed""#.to_owned()),
        ("an empty object", "{}".to_owned()),
        ("nested too deep", "[".repeat(100_000)),
        (
            "nested too deep in a field",
            format!(r#"{{"type":{}"#, r#"{"a":"#.repeat(100_000)),
        ),
        (
            "a NUL in the text",
            status_changed("nul", 3, "reviewing", "inter\0view").to_string(),
        ),
        (
            "a lone surrogate",
            interview("surrogate")
                .to_string()
                .replace("interview", r"\ud800"),
        ),
        (
            "very large",
            status_changed("large", 3, "reviewing", &"x".repeat(250_000)).to_string(),
        ),
        (
            "a number too large",
            interview("huge").to_string().replace(":3", ":1e400"),
        ),
    ]
}

#[tokio::test]
async fn a_batch_of_hundreds_with_duplicates_is_handled_in_one_go() {
    let world = World::start().await;

    let records = (1..=300).map(|number| {
        Record::new(
            &format!("m-{number}"),
            &interview(&format!("event-{}", number % 100)),
        )
    });
    world
        .sandbox
        .invoke_within(batch(records), AMPLE_FOR_MANY)
        .await
        .assert_none_failed();

    world.ses.assert_requests(100);
    assert_eq!(world.database.claims().await.len(), 100);
}

#[tokio::test]
async fn only_the_record_that_failed_is_reported() {
    let world = World::start().await;
    world
        .ses
        .reply_to_event("two", Reply::refuse(400, "MessageRejected", "No."));

    let records = ["one", "two", "three"]
        .map(|event_id| Record::new(&format!("m-{event_id}"), &interview(event_id)));
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-two"]);

    world.ses.assert_emails(2);
    world
        .database
        .assert_claims(&[("one", "sent"), ("three", "sent")])
        .await;
}

/// Asserts that of many records so many are in flight at once, and no more.
async fn assert_in_flight(world: &World, count: usize) {
    let gate = Gate::closed();
    let delay = Duration::from_millis(100);
    world
        .ses
        .reply_always(Reply::accept().after(&gate).delayed(delay));

    let records = (1..=3 * count).map(|number| {
        Record::new(
            &format!("m-{number}"),
            &interview(&format!("event-{number}")),
        )
    });
    let running = world.sandbox.begin(batch(records));
    world.ses.received(count).await;
    // One too many would arrive now, while none of these is answered.
    gate.open();

    running.answer().await.assert_none_failed();
    world.ses.assert_emails(3 * count);
    assert_eq!(world.ses.most_in_flight(), count);
}

#[tokio::test]
async fn records_run_concurrently_up_to_max_in_flight() {
    let world = World::start_with(|environment| environment.with("MAX_IN_FLIGHT", "3")).await;

    assert_in_flight(&world, 3).await;
}

#[tokio::test]
async fn without_a_setting_ten_records_run_at_once() {
    let world = World::start().await;

    assert_in_flight(&world, 10).await;
}

#[tokio::test]
async fn an_undecodable_body_never_touches_its_neighbours() {
    let world = World::start().await;
    let bodies = undecodable_bodies();

    let broken = bodies
        .iter()
        .map(|(what, body)| Record::with_body(&format!("broken: {what}"), body));
    let records = [Record::new("m-first", &interview("first"))]
        .into_iter()
        .chain(broken)
        .chain([Record::new("m-last", &order_placed(1001))]);
    let answer = world.sandbox.invoke(batch(records)).await;

    let expected: Vec<String> = bodies
        .iter()
        .map(|(what, _)| format!("broken: {what}"))
        .collect();
    answer.assert_failed(&expected.iter().map(String::as_str).collect::<Vec<_>>());
    world.ses.assert_requests(2);
    world
        .database
        .assert_claims(&[("first", "sent"), ("order-1001", "sent")])
        .await;
    for message_id in &expected {
        assert_eq!(
            world
                .sandbox
                .logs
                .outcome_of_message(message_id)
                .await
                .level(),
            "ERROR",
            "{message_id}"
        );
    }
}

#[tokio::test]
async fn a_body_that_is_no_text_never_touches_its_neighbours() {
    let world = World::start().await;

    let records = [
        Record::new("m-none", &interview("none")).without("body"),
        Record::new("m-null", &interview("null")).with("body", Value::Null),
        Record::new("m-object", &interview("object")).with("body", interview("object")),
        Record::new("m-number", &interview("number")).with("body", 7),
        Record::new("m-good", &interview("good")),
    ];
    let answer = world.sandbox.invoke(batch(records)).await;

    answer.assert_failed(&["m-none", "m-null", "m-object", "m-number"]);
    world.database.assert_claims(&[("good", "sent")]).await;
}

#[tokio::test]
async fn odd_message_attributes_are_no_reason_to_fail() {
    let world = World::start().await;
    let attributes = [
        (
            "null lists",
            json!({ "stringValue": "x", "stringListValues": null, "binaryListValues": null, "dataType": "String" }),
        ),
        (
            "lists",
            json!({ "stringListValues": ["a"], "binaryListValues": ["YQ=="], "dataType": "String" }),
        ),
        (
            "binary",
            json!({ "binaryValue": "AAECAw==", "dataType": "Binary" }),
        ),
        (
            "broken binary",
            json!({ "binaryValue": "not base64!", "dataType": "Binary.png" }),
        ),
        (
            "number",
            json!({ "stringValue": "1e3", "dataType": "Number.int" }),
        ),
        ("no type", json!({ "stringValue": "x" })),
        ("nothing", json!({})),
        ("null", Value::Null),
        ("no object", json!("text")),
    ];

    let records = attributes
        .iter()
        .enumerate()
        .map(|(number, (what, attribute))| {
            Record::new(&format!("m-{what}"), &interview(&format!("odd-{number}")))
                .with_message_attribute("odd", attribute.clone())
        });
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    world.ses.assert_emails(attributes.len());
}

#[tokio::test]
async fn missing_and_odd_fields_of_a_record_are_no_reason_to_fail() {
    let world = World::start().await;
    let good = |name: &str| Record::new(&format!("m-{name}"), &interview(name));

    let records = [
        good("no-attributes").without("attributes"),
        good("null-attributes").with("attributes", Value::Null),
        good("list-attributes").with("attributes", json!([])),
        good("number-attributes").with(
            "attributes",
            json!({ "ApproximateReceiveCount": 3, "SentTimestamp": null }),
        ),
        good("word-attributes").with("attributes", json!({ "ApproximateReceiveCount": "many" })),
        good("no-message-attributes").without("messageAttributes"),
        good("null-message-attributes").with("messageAttributes", Value::Null),
        good("list-message-attributes").with("messageAttributes", json!([1])),
        good("no-receipt-handle").without("receiptHandle"),
        good("no-md5").without("md5OfBody"),
        good("null-md5").with("md5OfBody", Value::Null),
        good("no-source")
            .without("eventSource")
            .without("eventSourceARN")
            .without("awsRegion"),
        good("null-source")
            .with("eventSource", Value::Null)
            .with("eventSourceARN", Value::Null),
        good("something-new").with("somethingNew", json!({ "a": [1, null] })),
    ];
    let count = records.len();
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    world.ses.assert_emails(count);
}

#[tokio::test]
async fn a_record_without_a_message_id_is_handled_like_any_other() {
    let world = World::start().await;

    let records = [
        Record::new("m-1", &interview("none")).without("messageId"),
        Record::new("", &interview("empty")),
        Record::new("m-3", &interview("null")).with("messageId", Value::Null),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    world.ses.assert_emails(3);
}

/// An empty identifier would have Lambda take the whole batch for failed without a word.
#[tokio::test]
async fn a_failed_record_without_a_message_id_fails_the_invocation_with_an_error_that_says_why() {
    let world = World::start().await;
    let broken = Record::with_body("m-1", "not json");
    let nameless = [
        broken.clone().without("messageId"),
        broken.clone().with("messageId", ""),
        broken.clone().with("messageId", Value::Null),
        broken.clone().with("messageId", 7),
        // As SQS's own API writes it, and the event source mapping doesn't.
        broken.clone().without("messageId").with("MessageId", "m-1"),
    ];
    for (number, record) in nameless.into_iter().enumerate() {
        let good = Record::new("m-good", &interview(&format!("good-{number}")));

        let failure = world
            .sandbox
            .try_invoke(batch([record, good]))
            .await
            .expect_err("no answer would do");

        assert!(
            failure.message().contains("messageId"),
            "{}",
            failure.message()
        );
    }
    world.ses.assert_emails(5);
    assert_eq!(
        world.database.claims().await.len(),
        5,
        "the neighbours were handled all the same"
    );
}

#[tokio::test]
async fn a_record_that_is_no_object_fails_the_invocation_and_not_its_neighbours() {
    let world = World::start().await;
    let mut event = batch([Record::new("m-good", &interview("good"))]);
    event["Records"]
        .as_array_mut()
        .expect("it is a list")
        .insert(0, Value::Null);

    let failure = world
        .sandbox
        .try_invoke(event)
        .await
        .expect_err("no answer would do");

    assert!(
        failure.message().contains("messageId"),
        "{}",
        failure.message()
    );
    world.database.assert_claims(&[("good", "sent")]).await;
}

#[tokio::test]
async fn what_is_no_sqs_event_gets_an_error_that_says_so() {
    let world = World::start().await;
    let others = [
        json!({}),
        json!({ "Records": null }),
        json!({ "Records": {} }),
        json!({ "Records": "m-1" }),
        json!([]),
        json!("Records"),
        json!(7),
        Value::Null,
        interview("bare"),
        json!({ "Records": [{ "EventSource": "aws:sns", "Sns": { "MessageId": "m-1", "Message": "{}" } }] }),
        json!({ "Records": [{ "eventSource": "aws:kinesis", "kinesis": { "data": "e30=" } }] }),
    ];
    for event in others {
        match world.sandbox.try_invoke(event.clone()).await {
            Err(Failure::Reported(error)) => {
                assert!(error.message.contains("SQS"), "{event}: {}", error.message)
            }
            other => panic!("{event}: {other:?}"),
        }
    }
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("still-alive"))]))
        .await
        .assert_none_failed();
    world.ses.assert_requests(1);
}

#[tokio::test]
async fn a_batch_that_is_wholly_broken_is_reported_and_the_process_stays_up() {
    let world = World::start().await;

    let records = (1..=10).map(|number| Record::with_body(&format!("m-{number}"), "poison"));
    let answer = world.sandbox.invoke(batch(records)).await;

    assert_eq!(answer.failed.len(), 10);
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("still-alive"))]))
        .await
        .assert_none_failed();
    world.ses.assert_requests(1);
}

#[tokio::test]
async fn a_record_that_can_never_be_sent_does_not_hold_up_another_of_its_key() {
    let world = World::start().await;
    let unreachable = world
        .database
        .application_of("Jo", "Se", "jos\u{e9}@example.com")
        .await;

    world
        .sandbox
        .invoke(batch([
            Record::new(
                "m-1",
                &status_changed("shared", unreachable, "reviewing", "interview"),
            ),
            Record::new("m-2", &interview("shared")),
        ]))
        .await
        .assert_failed(&["m-1"]);

    world.ses.assert_emails(1);
}
