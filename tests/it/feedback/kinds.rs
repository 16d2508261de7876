//! What is kept of each kind of notification: once each, and as little as serves.

use serde_json::{Value, json};

use crate::support::database::Told;
use crate::support::event::batch;
use crate::support::notification::{
    SAMPLES, about, in_eventbridge_envelope, in_sns_envelope, record, record_of_text, sample, send,
};

use super::{Listener, counted, kinds, with_outcome};

#[tokio::test]
async fn each_kind_is_recorded_under_its_name_with_as_little_as_serves() {
    let listener = Listener::start().await;
    let expected = [
        ("send", "send", json!({})),
        (
            "delivery",
            "delivery",
            json!({
                "processingTimeMillis": 1893,
                "recipients": 1,
                "reportingMTA": "a8-70.smtp-out.eu-west-1.amazonses.com",
            }),
        ),
        (
            "bounce",
            "bounce",
            json!({
                "bounceType": "Permanent",
                "bounceSubType": "General",
                "feedbackId": "0102018c7f3a6f10-bounce-000000",
                "recipients": 3,
                "reportingMTA": "dsn; a8-70.smtp-out.eu-west-1.amazonses.com",
                "statuses": ["5.1.1", "5.4.4"],
            }),
        ),
        (
            "complaint",
            "complaint",
            json!({
                "complaintFeedbackType": "abuse",
                "feedbackId": "0102018c7f3a7a44-complaint-000000",
                "recipients": 1,
            }),
        ),
        ("reject", "reject", json!({ "reason": "Bad content" })),
        (
            "delivery_delay",
            "delay",
            json!({
                "delayType": "TransientCommunicationFailure",
                "expirationTime": "2026-12-01T02:00:00.914Z",
                "recipients": 1,
                "statuses": ["4.4.1"],
            }),
        ),
        (
            "rendering_failure",
            "rendering_failure",
            json!({ "templateName": "interview" }),
        ),
        (
            "subscription",
            "subscription",
            json!({ "contactList": "candidates", "source": "UnsubscribeHeader" }),
        ),
        ("open", "open", json!({})),
        ("click", "click", json!({})),
        ("unknown_kind", "inbox_placement", json!({})),
    ];
    assert_eq!(expected.len(), SAMPLES.len(), "a sample is left out");

    for (file, kind, detail) in expected {
        let notification = about(sample(file), file, &format!("id-of-{file}"));
        listener.hears(&notification).await;

        let mut told = listener.database.told().await;
        told.retain(|told| told.event_id.as_deref() == Some(file));
        let row = Told {
            event_id: Some(file.to_owned()),
            ses_message_id: Some(format!("id-of-{file}")),
            kind: kind.to_owned(),
            detail,
        };
        assert_eq!(told, [row], "{file}");
    }
}

#[tokio::test]
async fn what_happened_keeps_the_time_at_which_it_happened() {
    let listener = Listener::start().await;
    let records = ["bounce", "rendering_failure"].map(|name| record(name, &sample(name)));
    listener.hears_all(records).await;

    let query = "SELECT kind, to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS at \
                 FROM email_feedback ORDER BY kind";
    let rows = listener.database.query(query, &[]).await;
    let times: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row.get("kind"), row.get("at")))
        .collect();
    let expected = [
        ("bounce", "2026-11-30 12:00:03"),
        // It says nothing of when it failed but when the email was sent.
        ("rendering_failure", "2026-11-30 12:00:00"),
    ];
    assert_eq!(times, expected);
}

#[tokio::test]
async fn a_notification_is_the_same_bare_from_sns_and_from_eventbridge() {
    let listener = Listener::start().await;
    for name in SAMPLES {
        let bare = sample(name);
        listener
            .hears_all([
                record("bare", &bare),
                record("sns", &in_sns_envelope(&bare)),
                record("eventbridge", &in_eventbridge_envelope(&bare)),
                record("both", &in_sns_envelope(&in_eventbridge_envelope(&bare))),
            ])
            .await;
    }

    assert_eq!(listener.database.told().await.len(), SAMPLES.len());
    listener.database.assert_claims(&[("told", "sent")]).await;
}

#[tokio::test]
async fn however_often_and_in_whatever_order_each_notification_is_recorded_once() {
    let listener = Listener::start().await;
    let all = || SAMPLES.iter().map(|name| record(name, &sample(name)));

    // Backwards: the delivery is told before the send. Then all at once, twice in one batch.
    for backwards in all().rev() {
        listener.hears_all([backwards]).await;
    }
    listener.hears_all(all().chain(all())).await;
    listener.hears_all(all()).await;

    let told = listener.database.told().await;
    assert_eq!(told.len(), SAMPLES.len(), "{:?}", kinds(&told));
    let lines = listener.log().await;
    let times = 4 * SAMPLES.len();
    assert_eq!(
        with_outcome(&lines, "duplicate").len(),
        times - SAMPLES.len()
    );
    assert_eq!(counted(&lines, "Bounces"), 1);
    assert_eq!(counted(&lines, "Complaints"), 1);
    assert_eq!(counted(&lines, "SettledBySes"), 1);
    assert_eq!(counted(&lines, "SecondEmails"), 0);
}

#[tokio::test]
async fn a_notification_without_our_tags_is_recorded_without_a_key() {
    let listener = Listener::start().await;
    let mut of_others = send("ignored", "of-others");
    of_others["mail"]["tags"] = json!({ "ses:configuration-set": ["newsletter"] });

    listener
        .hears_all([
            record("identity", &sample("identity_bounce")),
            record("others", &of_others),
        ])
        .await;

    let told = listener.database.told().await;
    assert_eq!(kinds(&told), ["send", "bounce"]);
    assert!(
        told.iter().all(|told| told.event_id.is_none()),
        "a key was made up: {told:?}"
    );
    listener.database.assert_claims(&[]).await;
    let lines = listener.log().await;
    assert_eq!(with_outcome(&lines, "recorded").len(), 2);
    assert!(lines.iter().all(|line| line.level() != "ERROR"));
}

#[tokio::test]
async fn no_address_name_or_text_of_an_email_is_kept_or_logged() {
    let listener = Listener::start().await;
    let all = SAMPLES.iter().map(|name| record(name, &sample(name)));
    let identity = record("identity", &sample("identity_bounce"));
    listener.hears_all(all.chain([identity])).await;
    let broken = sample("bounce")
        .to_string()
        .replace("\"eventType\"", "oops");
    listener
        .sandbox
        .invoke(batch([record_of_text("broken", &broken)]))
        .await
        .assert_failed(&["broken"]);

    let told = listener.database.told().await;
    let kept = told.iter().map(|told| told.detail.to_string());
    let logged = listener.log().await.into_iter().map(|line| line.text);
    for text in kept.chain(logged) {
        for personal in [
            "@",
            "wackelmann",
            "Quirin",
            "Backend Engineer",
            "203.0.113.9",
            "Mozilla",
            "user unknown",
            "jobs.example.com",
        ] {
            assert!(!text.contains(personal), "{personal:?} is in {text}");
        }
    }
}

/// An identity's own notifications have no tags, and may come first.
#[tokio::test]
async fn what_was_told_without_a_key_gets_it_when_it_is_told_with_one() {
    let listener = Listener::start().await;
    let tagged = about(sample("bounce"), "bounced", "id-1");
    let mut untagged = tagged.clone();
    untagged["mail"]["tags"] = Value::Null;

    listener.hears_all([record("n-1", &untagged)]).await;
    listener.hears_all([record("n-2", &tagged)]).await;

    let told = listener.database.told().await;
    assert_eq!(kinds(&told), ["bounce"]);
    assert_eq!(told[0].event_id.as_deref(), Some("bounced"));
}
