//! What CloudWatch is told of each invocation, in its embedded metric format.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::event::{Record, batch, interview, status_changed};
use crate::support::lambda::AMPLE_FOR_MANY;
use crate::support::logs::Line;
use crate::support::ses::Reply;
use crate::support::world::World;

/// The documents of one invocation.
async fn told(world: &World, records: Vec<Record>) -> Vec<Line> {
    world.sandbox.invoke(batch(records)).await;
    world.sandbox.kill().await;
    let lines = world.sandbox.logs.to_the_end().await;
    lines.into_iter().filter(Line::is_metric).collect()
}

/// The document with these dimensions.
#[track_caller]
fn with_dimensions<'a>(documents: &'a [Line], dimensions: &[(&str, &str)]) -> &'a Line {
    let names: Vec<&str> = dimensions.iter().map(|(name, _)| *name).collect();
    let found = documents.iter().find(|line| {
        let metrics = &line.field("_aws")["CloudWatchMetrics"][0];
        metrics["Dimensions"][0] == json!(names)
            && dimensions
                .iter()
                .all(|(name, value)| line.field(name) == *value)
    });
    found.unwrap_or_else(|| panic!("no document with {dimensions:?}"))
}

const FUNCTION: (&str, &str) = ("FunctionName", "onemail-notify");

#[tokio::test]
async fn each_outcome_is_counted_once_by_the_functions_name() {
    let world = World::start().await;
    let documents = told(
        &world,
        vec![
            Record::new("m-1", &interview("new")),
            Record::new("m-2", &interview("new")),
            Record::new("m-3", &status_changed("gone", 9999, "reviewing", "offer")),
            Record::with_body("m-4", "no json"),
        ],
    )
    .await;

    let document = with_dimensions(&documents, &[FUNCTION]);
    for (metric, count) in [
        ("Claimed", 2),
        ("Sent", 1),
        ("Duplicates", 1),
        ("Skipped", 1),
        ("Refused", 1),
    ] {
        assert_eq!(document.field(metric), count, "{metric}");
    }
}

#[tokio::test]
async fn what_was_not_sent_is_counted_once_more_by_its_reason() {
    let world = World::start().await;
    world.ses.reply_to_event(
        "paused",
        Reply::refuse(400, "SendingPausedException", "Email sending is disabled."),
    );
    let documents = told(
        &world,
        vec![
            Record::with_body("m-1", "no json"),
            Record::new("m-2", &interview("paused")),
        ],
    )
    .await;

    let refused = with_dimensions(&documents, &[FUNCTION, ("Reason", "malformed")]);
    assert_eq!(refused.field("Refused"), 1);
    let released = with_dimensions(&documents, &[FUNCTION, ("Reason", "ses_setup")]);
    assert_eq!(released.field("SetupErrors"), 1);
}

#[tokio::test]
async fn how_long_it_took_is_told_in_milliseconds() {
    let world = World::start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let sent_at = now.expect("it is after 1970").as_millis() - 90_000;
    let attributes = json!({
        "ApproximateReceiveCount": "2",
        "SentTimestamp": sent_at.to_string(),
    });
    let record = Record::new("m-1", &interview("waited")).with("attributes", attributes);
    let documents = told(&world, vec![record]).await;

    let document = with_dimensions(&documents, &[FUNCTION]);
    let arrival = only_value(document.field("ArrivalToAcceptance"));
    assert!((90_000.0..120_000.0).contains(&arrival), "{arrival} ms");
    for metric in ["SesTime", "DatabaseTime"] {
        let values = document.field(metric).as_array().expect("a list of values");
        assert!(!values.is_empty(), "{metric}");
        let sound = |value: &Value| {
            value
                .as_f64()
                .is_some_and(|value| (0.0..30_000.0).contains(&value))
        };
        assert!(values.iter().all(sound), "{metric}: {values:?}");
    }
    let metrics = document.field("_aws")["CloudWatchMetrics"][0]["Metrics"].as_array();
    let unit = metrics
        .expect("a list of metrics")
        .iter()
        .find(|metric| metric["Name"] == "SesTime")
        .map(|metric| metric["Unit"].clone());
    assert_eq!(unit, Some(json!("Milliseconds")));
}

fn only_value(values: &Value) -> f64 {
    match values.as_array().map(Vec::as_slice) {
        Some([value]) => value.as_f64().expect("a number"),
        _ => panic!("one value, not {values}"),
    }
}

/// The format takes a hundred values of a metric.
#[tokio::test]
async fn of_a_large_batch_all_is_counted_and_nothing_else_is_said() {
    let world = World::start().await;
    let records = (0..150).map(|number| {
        let event = interview(&format!("event-{number}"));
        Record::new(&format!("m-{number}"), &event)
    });
    world
        .sandbox
        .invoke_within(batch(records), AMPLE_FOR_MANY)
        .await
        .assert_none_failed();
    world.sandbox.kill().await;
    let lines = world.sandbox.logs.to_the_end().await;

    let documents: Vec<Line> = lines
        .iter()
        .filter(|line| line.is_metric())
        .cloned()
        .collect();
    let document = with_dimensions(&documents, &[FUNCTION]);
    assert_eq!(document.field("Sent"), 150);
    let values = document.field("SesTime").as_array().map(Vec::len);
    assert_eq!(values, Some(100));
    let other = lines
        .iter()
        .filter(|line| !line.is_metric() && line.outcome() != "sent")
        .map(|line| line.text.as_str())
        .collect::<Vec<_>>();
    assert_eq!(other, Vec::<&str>::new());
}
