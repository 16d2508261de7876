//! What can't be recorded, or not now, is reported, and touches no neighbour.

use serde_json::{Value, json};

use crate::support::event::{batch, interview};
use crate::support::notification::{self, in_sns_envelope, record, record_of_text, sample, send};
use crate::support::proxy::Then;

use super::{Listener, counted, with_outcome};

#[tokio::test]
async fn a_connection_that_breaks_at_any_statement_is_made_good_on_another() {
    let statements = [
        "BEGIN",
        "INSERT INTO email_feedback",
        "INSERT INTO processed_events",
        "COMMIT",
    ];
    for statement in statements {
        for then in [Then::Cut, Then::CutReplies] {
            let (listener, proxy) = Listener::start_with_proxy().await;
            let what = format!("{then:?} at {statement}");
            let broken = proxy.at(statement, then);

            listener.hears(&send("kept", "id-1")).await;

            broken.happened().await;
            let claims = listener.database.claims().await;
            assert_eq!(claims.len(), 1, "{what}");
            assert_eq!(claims[0].settled_by, "ses", "{what}");
            assert_eq!(listener.database.told().await.len(), 1, "{what}");
        }
    }
}

#[tokio::test]
async fn while_postgres_is_away_notifications_are_reported_and_come_back_the_later_the_more_often()
{
    let (listener, proxy) = Listener::start_with_proxy().await;
    proxy.refuse_connections().await;
    let often = json!({ "ApproximateReceiveCount": "4" });

    let records = [
        record("once", &send("a", "id-a")),
        record("often", &send("b", "id-b")).with("attributes", often),
    ];
    listener
        .sandbox
        .invoke(batch(records.clone()))
        .await
        .assert_failed(&["once", "often"]);

    let (once, often) = (
        listener.sqs.delays_of("once"),
        listener.sqs.delays_of("often"),
    );
    assert!(once.len() == 1 && (22..=30).contains(&once[0]), "{once:?}");
    assert!(
        often.len() == 1 && (180..=240).contains(&often[0]),
        "{often:?}"
    );
    proxy.take_connections().await;
    listener.hears_all(records).await;
    listener
        .database
        .assert_claims(&[("a", "sent"), ("b", "sent")])
        .await;
}

#[tokio::test]
async fn a_message_that_is_no_notification_is_reported_and_its_neighbours_are_recorded() {
    let listener = Listener::start().await;
    let without = |field: &str| {
        let mut notification = sample("send");
        notification
            .as_object_mut()
            .expect("it is an object")
            .remove(field);
        notification
    };
    let at = |time: Value| {
        let mut notification = sample("send");
        notification["mail"]["timestamp"] = time;
        notification
    };
    let malformed = [
        record_of_text("not-json", "{\"eventType\": "),
        record_of_text("a-list", "[]"),
        record_of_text("nothing", ""),
        record_of_text("no-body", "").without("body"),
        record("no-kind", &without("eventType")),
        record("no-mail", &without("mail")),
        record("no-time", &at(Value::Null)),
        record("odd-time", &at("yesterday".into())),
        record("no-such-day", &at("2026-02-31T12:00:00.000Z".into())),
        record("an-event", &interview("lost-its-way")),
    ];
    let message_ids = [
        "not-json",
        "a-list",
        "nothing",
        "no-body",
        "no-kind",
        "no-mail",
        "no-time",
        "odd-time",
        "no-such-day",
        "an-event",
    ];
    let before = record("before", &send("before", "id-1"));
    let after = record("after", &send("after", "id-2"));

    let answer = listener
        .sandbox
        .invoke(batch([before].into_iter().chain(malformed).chain([after])))
        .await;

    answer.assert_failed(&message_ids);
    listener
        .database
        .assert_claims(&[("after", "sent"), ("before", "sent")])
        .await;
    for message_id in message_ids {
        let line = listener.line(message_id, message_id).await;
        assert_eq!(
            (line.outcome(), line.level()),
            ("refused", "ERROR"),
            "{}",
            line.text
        );
        // Nothing passes here: the queue's own rules move it.
        assert!(listener.sqs.delays_of(message_id).is_empty());
    }
}

#[tokio::test]
async fn ses_greeting_its_new_topic_is_acknowledged_bare_and_from_sns() {
    let listener = Listener::start().await;
    let greeting = notification::text("greeting.txt");
    let mut from_sns = in_sns_envelope(&json!({}));
    from_sns["Message"] = greeting.as_str().into();

    listener
        .hears_all([
            record_of_text("bare", &greeting),
            record("sns", &from_sns),
            record("send", &send("after", "id-1")),
        ])
        .await;

    assert_eq!(listener.database.told().await.len(), 1);
    let line = listener.line("the greeting", "sns").await;
    assert_eq!((line.outcome(), line.level()), ("greeting", "INFO"));
}

/// The subject of an email comes back in its notifications, and whoever names a job writes it.
#[tokio::test]
async fn a_notification_that_quotes_the_greeting_is_still_a_notification() {
    let listener = Listener::start().await;
    let mut quoting = send("quoted", "id-1");
    quoting["mail"]["commonHeaders"]["subject"] = notification::text("greeting.txt").trim().into();

    listener.hears(&quoting).await;

    listener.database.assert_claims(&[("quoted", "sent")]).await;
}

#[tokio::test]
async fn what_is_no_sqs_event_fails_with_an_error_that_says_so() {
    let listener = Listener::start().await;
    for payload in [json!({}), json!({ "Records": null }), sample("send")] {
        let failure = listener
            .sandbox
            .try_invoke(payload)
            .await
            .expect_err("it is no SQS event");
        assert!(
            failure.message().contains("not an SQS event"),
            "{}",
            failure.message()
        );
        assert_eq!(failure.reported().error_type, "InvocationFailed");
    }
}

#[tokio::test]
async fn without_its_table_feedback_needs_you_and_says_so() {
    let listener = Listener::start().await;
    listener
        .database
        .execute("ALTER TABLE email_feedback RENAME TO gone")
        .await;

    listener
        .sandbox
        .invoke(batch([record("n-1", &send("unheard", "id-1"))]))
        .await
        .assert_failed(&["n-1"]);

    let lines = listener.log().await;
    let released = with_outcome(&lines, "released");
    assert_eq!(released.len(), 1);
    assert_eq!(released[0].level(), "ERROR");
    assert_eq!(released[0].field("code"), "42P01");
    assert_eq!(counted(&lines, "SetupErrors"), 1);
}
