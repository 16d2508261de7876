//! Events: what is wrong with one is found before the database is asked; envelopes; keys.

use serde_json::{Value, json};

use crate::support::event::{
    Record, batch, in_eventbridge_envelope, in_sns_envelope, interview, order_placed,
    status_changed,
};
use crate::support::world::World;

/// A status change with this in place of what it should have.
fn with(field: &str, value: Value) -> Value {
    let mut event = interview("broken");
    event[field] = value;
    event
}

fn without(field: &str) -> Value {
    let mut event = interview("broken");
    event
        .as_object_mut()
        .expect("an event is an object")
        .remove(field);
    event
}

fn invalid_events() -> Vec<Value> {
    vec![
        without("type"),
        with("type", Value::Null),
        with("type", json!(7)),
        with("type", json!("")),
        with("type", json!("application.unheard_of")),
        with("type", json!("Application.Status_Changed")),
        with("type", json!("application.status_changed ")),
        with("type", json!("../application.status_changed")),
        with("type", json!("layout.html")),
        without("event_id"),
        with("event_id", Value::Null),
        with("event_id", json!("")),
        with("event_id", json!("x".repeat(65))),
        with("event_id", json!("schlüssel")),
        with("event_id", json!("two words")),
        with("event_id", json!("line\nbreak")),
        with("event_id", json!(7)),
        with("event_id", json!(["broken"])),
        without("application_id"),
        with("application_id", Value::Null),
        with("application_id", json!("3")),
        with("application_id", json!(0)),
        with("application_id", json!(-3)),
        with("application_id", json!(3.5)),
        with("application_id", json!(99_999_999_999_999_999_999_f64)),
        with("application_id", json!(true)),
        without("new_status"),
        with("new_status", Value::Null),
        with("new_status", json!("")),
        with("new_status", json!("x".repeat(51))),
        with("new_status", json!({ "name": "interview" })),
        with("old_status", json!(7)),
        json!({ "type": "order.placed" }),
        json!({ "type": "order.placed", "order_id": "1001" }),
        json!({ "type": "order.placed", "order_id": null }),
    ]
}

#[tokio::test]
async fn an_invalid_event_is_refused_before_the_database_is_asked() {
    let (world, proxy) = World::start_with_proxy().await;
    let events = invalid_events();
    let message_ids: Vec<String> = (0..events.len())
        .map(|number| format!("m-{number}"))
        .collect();

    let records = message_ids
        .iter()
        .zip(&events)
        .map(|(message_id, event)| Record::new(message_id, event));
    let answer = world.sandbox.invoke(batch(records)).await;

    for (message_id, event) in message_ids.iter().zip(&events) {
        assert!(answer.failed.contains(message_id), "accepted: {event}");
        let line = world.sandbox.logs.outcome_of_message(message_id).await;
        assert_eq!(line.level(), "ERROR", "{}", line.text);
    }
    world.ses.assert_requests(0);
    let asked = proxy
        .messages()
        .into_iter()
        .filter_map(|message| message.sql().map(str::to_owned))
        .next();
    assert_eq!(asked, None, "the database was asked");
}

#[tokio::test]
async fn the_line_of_an_invalid_event_names_the_field() {
    let world = World::start().await;
    for (number, field) in ["event_id", "application_id", "new_status"]
        .into_iter()
        .enumerate()
    {
        let message_id = format!("m-{number}");

        world
            .sandbox
            .invoke(batch([Record::new(&message_id, &without(field))]))
            .await
            .assert_failed(&[&message_id]);

        let line = world.sandbox.logs.outcome_of_message(&message_id).await;
        assert!(line.text.contains(field), "{}", line.text);
    }
}

#[tokio::test]
async fn an_event_may_have_fields_that_nobody_asked_for() {
    let world = World::start().await;
    let mut event = interview("rich");
    event["trace"] = json!({ "id": "abc", "to_address": "eve@example.net", "tags": [1, null] });
    event["to_address"] = json!("eve@example.net");

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &event)]))
        .await
        .assert_none_failed();

    assert_eq!(world.ses.only_email().to().address, "sam@example.com");
}

#[tokio::test]
async fn an_optional_field_may_be_missing() {
    let world = World::start().await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &without("old_status"))]))
        .await
        .assert_none_failed();

    world.ses.assert_emails(1);
}

#[tokio::test]
async fn keys_of_any_visible_ascii_characters_and_up_to_64_of_them_are_taken() {
    let world = World::start().await;
    let longest = "k".repeat(64);
    let visible: String = ('!'..='~').collect();
    let keys: [&str; 7] = [
        "23e48c51-5f05-4d7e-9d5a-2f5a6c1f0a11",
        "test-missing",
        "a",
        "1",
        &longest,
        &visible[..64],
        &visible[60..],
    ];

    let records = keys
        .iter()
        .enumerate()
        .map(|(number, key)| Record::new(&format!("m-{number}"), &interview(key)));
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    let mut claimed: Vec<String> = world
        .database
        .claims()
        .await
        .into_iter()
        .map(|claim| claim.event_id)
        .collect();
    let mut expected = keys.map(str::to_owned).to_vec();
    claimed.sort();
    expected.sort();
    assert_eq!(claimed, expected);
}

#[tokio::test]
async fn the_key_of_an_order_is_derived_from_its_id() {
    let world = World::start().await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &order_placed(1002))]))
        .await
        .assert_none_failed();

    world
        .database
        .assert_claims(&[("order-1002", "sent")])
        .await;
    assert_eq!(world.database.claims().await[0].event_type, "order.placed");
}

#[tokio::test]
async fn an_event_inside_an_sns_notification_is_sent() {
    let world = World::start().await;

    let body = in_sns_envelope(&interview("over-sns"));
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &body)]))
        .await
        .assert_none_failed();

    world.database.assert_claims(&[("over-sns", "sent")]).await;
}

#[tokio::test]
async fn an_event_inside_an_eventbridge_event_is_sent() {
    let world = World::start().await;

    let body = in_eventbridge_envelope(&interview("over-eventbridge"));
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &body)]))
        .await
        .assert_none_failed();

    world
        .database
        .assert_claims(&[("over-eventbridge", "sent")])
        .await;
}

#[tokio::test]
async fn a_broken_envelope_is_refused_alone() {
    let world = World::start().await;
    let mut sns = in_sns_envelope(&interview("broken"));
    sns["Message"] = json!("not json");
    let mut no_message = in_sns_envelope(&interview("broken"));
    no_message["Message"] = Value::Null;
    let mut eventbridge = in_eventbridge_envelope(&interview("broken"));
    eventbridge["detail"] = json!("not an object");

    let records = [
        Record::new("m-1", &sns),
        Record::new("m-2", &no_message),
        Record::new("m-3", &eventbridge),
        Record::new(
            "m-4",
            &in_sns_envelope(&status_changed("whole", 3, "reviewing", "offer")),
        ),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-1", "m-2", "m-3"]);

    world.database.assert_claims(&[("whole", "sent")]).await;
}
