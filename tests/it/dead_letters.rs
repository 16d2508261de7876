//! What can never be sent is moved to the dead-letter queue at once, as it came and with the reason, and acknowledged.
//! What could not be moved is reported, so that the redrive policy moves it later.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::support::event::{Record, batch, interview, order_placed, status_changed};
use crate::support::logs::Line;
use crate::support::ses::Reply;
use crate::support::world::World;

async fn world_with_dead_letters() -> World {
    world_with_dead_letters_in("dead-letters").await
}

async fn world_with_dead_letters_in(queue: &str) -> World {
    World::start_with_sqs(|environment, sqs| {
        environment.with("DEAD_LETTER_QUEUE_URL", &sqs.queue_url(queue))
    })
    .await
}

/// An event that names no application.
fn hopeless(event_id: &str) -> Value {
    status_changed(event_id, -1, "reviewing", "offer")
}

fn text_attribute(value: &str) -> Value {
    json!({ "stringValue": value, "dataType": "String", "stringListValues": [], "binaryListValues": [] })
}

/// The letter with this body, and that there is one alone.
#[track_caller]
fn letter(world: &World, body: &str) -> Value {
    let mut letters = world.sqs.messages();
    letters.retain(|letter| letter["MessageBody"] == body);
    assert_eq!(letters.len(), 1, "letters with the body {body}");
    letters.remove(0)
}

/// The attributes of a letter that are ours.
fn ours(letter: &Value) -> Map<String, Value> {
    let attributes = letter["MessageAttributes"]
        .as_object()
        .into_iter()
        .flatten();
    attributes
        .filter(|(name, _)| name.starts_with("onemail_"))
        .map(|(name, value)| {
            assert_eq!(value["DataType"], "String", "{name}");
            (name.clone(), value["StringValue"].clone())
        })
        .collect()
}

/// An event for which SES, Postgres or our own rules have no cure, and the reason that its letter must give.
struct Hopeless {
    reason: &'static str,
    message_id: &'static str,
    body: String,
    /// Where it could be read.
    event_id: Option<&'static str>,
}

async fn every_reason(world: &World) -> Vec<Hopeless> {
    world
        .sandbox
        .invoke(batch([Record::new("m-0", &interview("reused"))]))
        .await
        .assert_none_failed();
    world.ses.reply_to_event(
        "rejected",
        Reply::refuse(400, "MessageRejected", "Email contains a virus."),
    );
    let nowhere = world
        .database
        .application_of("Ada", "Lovelace", "ada at example.com")
        .await;
    let out_of_range = "
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'out of range' USING ERRCODE = '22003'; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON processed_events
            FOR EACH ROW WHEN (NEW.event_id = 'out-of-range') EXECUTE FUNCTION refuse()";
    world.database.execute(out_of_range).await;
    let case = |reason, message_id, body: String, event_id| Hopeless {
        reason,
        message_id,
        body,
        event_id,
    };
    vec![
        case("malformed", "m-1", "{\"type\": oops".to_owned(), None),
        case("malformed", "m-2", hopeless("no-one").to_string(), None),
        case(
            "unknown_type",
            "m-3",
            json!({ "type": "invoice.paid", "event_id": "x" }).to_string(),
            None,
        ),
        case(
            "key_reused",
            "m-4",
            status_changed("reused", 3, "interview", "offer").to_string(),
            Some("reused"),
        ),
        case(
            "impossible_address",
            "m-5",
            status_changed("nowhere", nowhere, "reviewing", "offer").to_string(),
            Some("nowhere"),
        ),
        case(
            "impossible_data",
            "m-6",
            interview("out-of-range").to_string(),
            Some("out-of-range"),
        ),
        case(
            "message_refused",
            "m-7",
            interview("rejected").to_string(),
            Some("rejected"),
        ),
    ]
}

fn records(cases: &[Hopeless]) -> impl Iterator<Item = Record> {
    cases
        .iter()
        .map(|case| Record::with_body(case.message_id, &case.body))
}

#[tokio::test]
async fn each_reason_for_which_an_event_can_never_be_sent_moves_it_and_acknowledges_it() {
    let world = world_with_dead_letters().await;
    let cases = every_reason(&world).await;
    let good = Record::new("good", &order_placed(1001));

    world
        .sandbox
        .invoke(batch(records(&cases).chain([good])))
        .await
        .assert_none_failed();

    assert_eq!(world.sqs.messages().len(), cases.len());
    for case in &cases {
        let letter = letter(&world, &case.body);
        assert_eq!(letter["QueueUrl"], world.sqs.queue_url("dead-letters"));
        let mut ours = ours(&letter);
        let detail = ours.remove("onemail_detail").unwrap_or_default();
        assert!(
            detail.as_str().is_some_and(|detail| detail.len() > 10),
            "the detail of {} is {detail}",
            case.message_id
        );
        let mut expected = Map::new();
        expected.insert("onemail_reason".into(), case.reason.into());
        expected.insert("onemail_message_id".into(), case.message_id.into());
        if let Some(event_id) = case.event_id {
            expected.insert("onemail_event_id".into(), event_id.into());
        }
        assert_eq!(ours, expected, "{}", case.message_id);

        let line = world.sandbox.logs.outcome_of_message(case.message_id).await;
        assert_eq!(
            (line.outcome(), line.level()),
            ("dead_lettered", "ERROR"),
            "{}",
            line.text
        );
        assert_eq!(line.field("reason"), case.reason, "{}", line.text);
    }
    world
        .database
        .assert_claims(&[("order-1001", "sent"), ("reused", "sent")])
        .await;
    assert_eq!(counted(&world, "DeadLettered").await, 7);
}

/// How much the second invocation counted under this name.
async fn counted(world: &World, metric: &str) -> u64 {
    let has = |line: &Line| line.is_metric() && line.fields.contains_key(metric);
    let line = world.sandbox.logs.wait_for(metric, has).await;
    line.field(metric).as_f64().unwrap_or_default() as u64
}

#[tokio::test]
async fn without_a_queue_to_move_it_to_it_is_reported_and_sqs_is_asked_nothing() {
    let world = World::start().await;
    let cases = every_reason(&world).await;

    let answer = world.sandbox.invoke(batch(records(&cases))).await;

    answer.assert_failed(&["m-1", "m-2", "m-3", "m-4", "m-5", "m-6", "m-7"]);
    assert_eq!(world.sqs.actions(), [""; 0]);
    for case in &cases {
        let line = world.sandbox.logs.outcome_of_message(case.message_id).await;
        assert_eq!((line.outcome(), line.level()), ("refused", "ERROR"));
        assert_eq!(line.field("reason"), case.reason);
    }
    world.database.assert_claims(&[("reused", "sent")]).await;
    assert_eq!(counted(&world, "Refused").await, 7);
}

#[tokio::test]
async fn no_letter_tells_more_of_a_person_than_the_message_did() {
    let world = world_with_dead_letters().await;
    let cases = every_reason(&world).await;
    world.sandbox.invoke(batch(records(&cases))).await;

    for letter in world.sqs.messages() {
        let attributes = letter["MessageAttributes"].to_string();
        for personal in ["@example", "ada at", "Lovelace", "sam"] {
            assert!(!attributes.contains(personal), "{attributes}");
        }
    }
}

#[tokio::test]
async fn body_and_attributes_arrive_as_they_came() {
    let world = world_with_dead_letters().await;
    let body = "{ \"type\":\"application.status_changed\",\n\t\"event_id\": \"ü\\u00fc\", oops";
    let record = Record::with_body("m-1", body)
        .with_message_attribute("trace", text_attribute("Root=1-5759e988-bd862e3fe1be46a9"))
        .with_message_attribute(
            "kind",
            json!({ "stringValue": "{}", "dataType": "String.json" }),
        )
        .with_message_attribute(
            "attempt",
            json!({ "stringValue": "3.50", "dataType": "Number" }),
        )
        .with_message_attribute(
            "amount",
            json!({ "stringValue": "7", "dataType": "Number.int" }),
        )
        .with_message_attribute(
            "seal",
            json!({ "binaryValue": "AP/+AQ==", "dataType": "Binary", "stringListValues": null }),
        )
        .with_message_attribute(
            "icon",
            json!({ "binaryValue": "iVBORw0=", "dataType": "Binary.png" }),
        );

    world
        .sandbox
        .invoke(batch([record]))
        .await
        .assert_none_failed();

    let letter = letter(&world, body);
    let mut theirs = letter["MessageAttributes"]
        .as_object()
        .expect("attributes")
        .clone();
    theirs.retain(|name, _| !name.starts_with("onemail_"));
    let expected = json!({
        "trace": { "DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a9" },
        "kind": { "DataType": "String.json", "StringValue": "{}" },
        "attempt": { "DataType": "Number", "StringValue": "3.50" },
        "amount": { "DataType": "Number.int", "StringValue": "7" },
        "seal": { "DataType": "Binary", "BinaryValue": "AP/+AQ==" },
        "icon": { "DataType": "Binary.png", "BinaryValue": "iVBORw0=" },
    });
    assert_eq!(Value::Object(theirs), expected);
}

/// SQS takes ten attributes of a message.
#[tokio::test]
async fn a_message_without_room_for_the_reason_is_reported_and_one_with_little_room_gives_it_alone()
{
    let world = world_with_dead_letters().await;
    let with_attributes = |message_id: &str, count: usize| {
        (0..count).fold(
            Record::new(message_id, &hopeless(message_id)),
            |record, number| {
                record.with_message_attribute(&format!("a{number}"), text_attribute("x"))
            },
        )
    };

    world
        .sandbox
        .invoke(batch([
            with_attributes("m-ten", 10),
            with_attributes("m-nine", 9),
        ]))
        .await
        .assert_failed(&["m-ten"]);

    assert_eq!(world.sqs.messages().len(), 1);
    let letter = letter(&world, &hopeless("m-nine").to_string());
    let names: Vec<String> = ours(&letter).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["onemail_reason"]);
    let line = world.sandbox.logs.outcome_of_message("m-ten").await;
    assert_eq!((line.outcome(), line.level()), ("refused", "ERROR"));
}

#[tokio::test]
async fn a_message_that_was_moved_before_is_moved_again_with_the_new_reason() {
    let world = world_with_dead_letters().await;
    // Ten attributes, of which some are ours: an operator has put the letter back on the queue as it was.
    let mut record = Record::new("m-1", &hopeless("again"))
        .with_message_attribute("onemail_reason", text_attribute("key_reused"))
        .with_message_attribute("onemail_detail", text_attribute("an old story"))
        .with_message_attribute("onemail_message_id", text_attribute("m-0"));
    for number in 0..7 {
        record = record.with_message_attribute(&format!("a{number}"), text_attribute("x"));
    }

    world
        .sandbox
        .invoke(batch([record]))
        .await
        .assert_none_failed();

    let ours = ours(&letter(&world, &hopeless("again").to_string()));
    assert_eq!(ours["onemail_reason"], "malformed");
    assert_eq!(ours["onemail_message_id"], "m-1");
}

#[tokio::test]
async fn a_message_without_a_body_is_reported() {
    let world = world_with_dead_letters().await;
    let records = [
        Record::with_body("m-empty", ""),
        Record::with_body("m-none", "").without("body"),
    ];

    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-empty", "m-none"]);

    assert_eq!(world.sqs.messages(), Vec::<Value>::new());
}

#[tokio::test]
async fn while_sqs_denies_everything_it_is_reported_with_a_warning_that_says_why() {
    let world = world_with_dead_letters().await;
    world.sqs.deny_everything();

    let records = [
        Record::new("m-1", &hopeless("hopeless")),
        Record::new("m-2", &interview("good")),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-1"]);

    world.database.assert_claims(&[("good", "sent")]).await;
    let line = world.sandbox.logs.outcome_of_message("m-1").await;
    assert_eq!((line.outcome(), line.level()), ("refused", "ERROR"));
    let warning = |line: &Line| line.level() == "WARN" && line.field("message_id") == "m-1";
    let warning = world.sandbox.logs.wait_for("a warning", warning).await;
    assert!(
        warning.text.contains("AccessDenied") && warning.text.contains("DEAD_LETTER_QUEUE_URL"),
        "{}",
        warning.text
    );
    // Whose session it is may be anybody's address.
    assert!(!warning.text.contains('@'), "{}", warning.text);
    assert!(
        warning.text.contains("not authorized to perform: sqs:"),
        "{}",
        warning.text
    );
}

#[tokio::test]
async fn where_sqs_cannot_even_be_asked_it_is_reported_and_its_body_is_not_logged() {
    // Without a scheme, and such that the SDK panics.
    for endpoint in ["localhost:4566", ""] {
        let world = World::start_with_sqs(|environment, sqs| {
            environment
                .with("DEAD_LETTER_QUEUE_URL", &sqs.queue_url("dead-letters"))
                .with("AWS_ENDPOINT_URL_SQS", endpoint)
        })
        .await;
        let mut event = hopeless("hopeless");
        event["note"] = json!("of Sam alone");

        let records = [
            Record::new("m-1", &event),
            Record::new("m-2", &interview("good")),
        ];
        world
            .sandbox
            .invoke(batch(records))
            .await
            .assert_failed(&["m-1"]);

        world.database.assert_claims(&[("good", "sent")]).await;
        let warning = |line: &Line| line.level() == "WARN" && line.field("message_id") == "m-1";
        world.sandbox.logs.wait_for("a warning", warning).await;
        let logged = world.sandbox.logs.text();
        assert!(!logged.contains("of Sam alone"), "{endpoint}: {logged}");
    }
}

#[tokio::test]
async fn while_sqs_is_silent_it_is_reported_before_the_deadline_and_its_neighbours_are_sent() {
    let world = world_with_dead_letters().await;
    world.sqs.fall_silent();

    let hopeless = (0..12).map(|number| {
        let message_id = format!("m-{number}");
        Record::new(&message_id, &hopeless(&message_id))
    });
    let good = Record::new("m-good", &interview("good"));
    let answer = world
        .sandbox
        .invoke_within(batch(hopeless.chain([good])), Duration::from_secs(15))
        .await;

    assert_eq!(answer.failed.len(), 12, "{:?}", answer.failed);
    world.database.assert_claims(&[("good", "sent")]).await;
}

#[tokio::test]
async fn a_fifo_queue_gets_the_message_in_its_group_and_with_its_id() {
    let world = world_with_dead_letters_in("dead-letters.fifo").await;

    world
        .sandbox
        .invoke(batch([
            Record::new("m-1", &hopeless("first")).in_group("candidate-7"),
            Record::new("m-2", &hopeless("second")),
        ]))
        .await
        .assert_none_failed();

    let first = letter(&world, &hopeless("first").to_string());
    assert_eq!(first["MessageGroupId"], "candidate-7");
    assert_eq!(first["MessageDeduplicationId"], "m-1");
    let second = letter(&world, &hopeless("second").to_string());
    assert!(
        second["MessageGroupId"]
            .as_str()
            .is_some_and(|group| !group.is_empty()),
        "{second}"
    );
    assert_eq!(second["MessageDeduplicationId"], "m-2");
}

/// A standard queue refuses a deduplication id.
#[tokio::test]
async fn a_standard_queue_gets_neither_a_group_nor_a_deduplication_id() {
    let world = world_with_dead_letters().await;

    world
        .sandbox
        .invoke(batch([
            Record::new("m-1", &hopeless("first")).in_group("candidate-7")
        ]))
        .await
        .assert_none_failed();

    let letter = letter(&world, &hopeless("first").to_string());
    assert_eq!(letter["MessageGroupId"], Value::Null);
    assert_eq!(letter["MessageDeduplicationId"], Value::Null);
}

#[tokio::test]
async fn in_a_fifo_group_what_was_moved_no_longer_stops_what_follows() {
    let world = world_with_dead_letters_in("dead-letters.fifo").await;

    world
        .sandbox
        .invoke(batch([
            Record::new("m-1", &hopeless("first")).in_group("candidate-7"),
            Record::new("m-2", &interview("second")).in_group("candidate-7"),
        ]))
        .await
        .assert_none_failed();

    world.database.assert_claims(&[("second", "sent")]).await;
}
