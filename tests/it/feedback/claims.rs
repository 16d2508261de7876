//! A `Send` completes the claim that no worker wrote, and changes none that one did.

use crate::support::event::{Record, batch, interview, order_placed, status_changed};
use crate::support::gate::Gate;
use crate::support::lambda::Running;
use crate::support::mode::Mode;
use crate::support::notification::{self, SAMPLES, about, record, sample, send};
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{Listener, counted, kinds};

#[tokio::test]
async fn a_send_completes_a_key_that_was_never_claimed_and_the_event_is_then_a_duplicate() {
    let (world, listener) = Listener::with_worker().await;

    listener.hears(&send("lost", "id-lost")).await;

    let claim = world.database.claim("lost").await.expect("a claim");
    assert_eq!(claim.event_type, "application.status_changed");
    assert_eq!(claim.outcome, "sent");
    assert_eq!(claim.settled_by, "ses");
    assert_eq!(claim.ses_message_id.as_deref(), Some("id-lost"));
    let line = listener.line("the settled claim", "n-1").await;
    assert_eq!((line.outcome(), line.level()), ("settled", "INFO"));
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("lost"))]))
        .await
        .assert_none_failed();
    world.ses.assert_requests(0);
    let line = world.sandbox.logs.outcome_of("lost").await;
    assert_eq!(line.outcome(), "duplicate");
    // The payload, which SES doesn't tell, is the message's.
    let mut after = world.database.claim("lost").await.expect("a claim");
    assert_eq!(after.payload_sha256.len(), 32);
    after.payload_sha256.clear();
    assert_eq!(after, claim);
    assert_eq!(counted(&listener.log().await, "SettledBySes"), 1);
}

/// SES takes letters, digits, `_` and `-` in a tag, and a key may have more.
#[tokio::test]
async fn a_send_completes_a_key_that_fits_no_tag() {
    let (world, listener) = Listener::with_worker().await;
    world.ses.reply_next(Reply::accept_without_reply());
    let event = batch([Record::new("m-1", &interview("2026/11/30#7"))]);
    world
        .sandbox
        .invoke(event.clone())
        .await
        .assert_failed(&["m-1"]);

    let email = world.ses.only_email();
    listener
        .hears(&notification::of_email("send", &email))
        .await;

    let claim = world.database.claim("2026/11/30#7").await.expect("a claim");
    assert_eq!(claim.settled_by, "ses");
    assert_eq!(claim.ses_message_id, Some(email.message_id));
    world.sandbox.invoke(event).await.assert_none_failed();
    world.ses.assert_requests(1);
}

#[tokio::test]
async fn a_send_leaves_a_committed_claim_as_it_is() {
    let (world, listener) = Listener::with_worker().await;
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("sent"))]))
        .await
        .assert_none_failed();
    let claim = world.database.claim("sent").await.expect("a claim");

    let email = world.ses.only_email();
    listener
        .hears(&notification::of_email("send", &email))
        .await;

    assert_eq!(world.database.claim("sent").await, Some(claim));
    let line = listener.line("the recorded send", "n-1").await;
    assert_eq!((line.outcome(), line.level()), ("recorded", "INFO"));
}

#[tokio::test]
async fn a_send_fills_in_a_missing_message_id_and_changes_nothing_else() {
    let (world, listener) = Listener::with_worker().await;
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("sent"))]))
        .await
        .assert_none_failed();
    let claim = world.database.claim("sent").await.expect("a claim");
    world
        .database
        .execute("UPDATE processed_events SET ses_message_id = NULL")
        .await;

    let email = world.ses.only_email();
    listener
        .hears(&notification::of_email("send", &email))
        .await;

    assert_eq!(world.database.claim("sent").await, Some(claim));
    assert_eq!(counted(&listener.log().await, "SettledBySes"), 0);
}

#[tokio::test]
async fn a_send_completes_a_claim_that_stands_in_sending() {
    let listener = Listener::start().await;
    let insert = "INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256) \
                  VALUES ('leased', 'application.status_changed', 'sending', 'worker', 'payload'), \
                         ('held', 'application.status_changed', 'unknown', 'worker', 'payload')";
    listener.database.execute(insert).await;

    let records = ["leased", "held"].map(|id| record(id, &send(id, &format!("id-{id}"))));
    listener.hears_all(records).await;

    for id in ["leased", "held"] {
        let claim = listener.database.claim(id).await.expect("a claim");
        assert_eq!(claim.outcome, "sent", "{id}");
        assert_eq!(claim.settled_by, "ses", "{id}");
        assert_eq!(claim.ses_message_id, Some(format!("id-{id}")));
        assert_eq!(claim.payload_sha256, b"payload", "{id}");
    }
}

/// `Send` may be lost, or later: SES keeps no order.
#[tokio::test]
async fn whatever_ses_says_of_an_accepted_email_completes_a_claim_that_is_in_doubt() {
    let listener = Listener::start().await;
    let insert = "INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256, lease_until) \
                  SELECT name || '-' || outcome, 'application.status_changed', outcome, 'worker', 'payload', \
                         CASE outcome WHEN 'sending' THEN now() END \
                    FROM unnest(string_to_array($1, ' ')) AS name, unnest(ARRAY['sending', 'unknown']) AS outcome";
    listener.database.query(insert, &[&SAMPLES.join(" ")]).await;
    let rows = SAMPLES
        .iter()
        .flat_map(|name| ["sending", "unknown"].map(|outcome| (*name, outcome)));

    for (name, outcome) in rows {
        let key = format!("{name}-{outcome}");
        listener
            .hears(&about(sample(name), &key, &format!("id-{key}")))
            .await;

        let claim = listener.database.claim(&key).await.expect("a claim");
        // It was not rendered, it is of no email, or nobody knows what it says.
        if ["rendering_failure", "subscription", "unknown_kind"].contains(&name) {
            assert_eq!(
                (claim.outcome.as_str(), claim.settled_by.as_str()),
                (outcome, "worker"),
                "{key}"
            );
            continue;
        }
        assert_eq!(
            (claim.outcome.as_str(), claim.settled_by.as_str()),
            ("sent", "ses"),
            "{key}"
        );
        assert_eq!(claim.ses_message_id, Some(format!("id-{key}")));
        assert_eq!(claim.payload_sha256, b"payload", "{key}");
    }
}

#[tokio::test]
async fn a_bounce_or_a_complaint_that_completes_a_claim_is_counted_as_what_it_is() {
    let listener = Listener::start().await;
    let insert = "INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256, lease_until) \
                  SELECT key, 'application.status_changed', 'sending', 'worker', 'payload', now() \
                    FROM unnest(ARRAY['bounce', 'complaint']) AS key";
    listener.database.execute(insert).await;

    let told = ["bounce", "complaint"]
        .map(|name| record(name, &about(sample(name), name, &format!("id-{name}"))));
    listener.hears_all(told).await;

    let lines = listener.log().await;
    for (metric, count) in [("SettledBySes", 2), ("Bounces", 1), ("Complaints", 1)] {
        assert_eq!(counted(&lines, metric), count, "{metric}");
    }
}

#[tokio::test]
async fn only_a_send_completes_a_key_that_was_never_claimed() {
    let listener = Listener::start().await;
    let others = SAMPLES.iter().filter(|name| **name != "send");
    listener
        .hears_all(others.map(|name| record(name, &sample(name))))
        .await;

    listener.database.assert_claims(&[]).await;
}

/// A worker in mid-send in transaction mode, and the batch in which SES's word on its email comes too soon.
async fn worker_in_mid_send(gate: &Gate) -> (World, Listener, Running) {
    let (world, listener) = Listener::with_worker_in(Mode::Transaction).await;
    world.ses.reply_next(Reply::accept().after(gate));
    let running = world
        .sandbox
        .begin(batch([Record::new("m-1", &interview("early"))]));
    let email = world.ses.received(1).await.remove(0);

    let answer = listener
        .sandbox
        .invoke(batch([
            record("delivery", &about(sample("delivery"), "earlier", "id-0")),
            record("early", &notification::of_email("send", &email)),
            record(
                "early-delivery",
                &notification::of_email("delivery", &email),
            ),
            record("other", &send("other", "id-1")),
        ]))
        .await;

    answer.assert_failed(&["early"]);
    (world, listener, running)
}

#[tokio::test]
async fn a_worker_in_mid_send_delays_its_own_notification_and_no_other() {
    let gate = Gate::closed();
    let (world, listener, running) = worker_in_mid_send(&gate).await;

    assert_eq!(listener.sqs.delays_of("early"), [10], "seconds");
    assert_eq!(listener.sqs.sizes_of_visibility_requests(), [1]);
    let told = listener.database.told().await;
    assert_eq!(kinds(&told), ["send", "delivery", "delivery"]);
    world.database.assert_claims(&[("other", "sent")]).await;
    let line = listener.line("the delayed notification", "early").await;
    assert_eq!((line.outcome(), line.level()), ("released", "WARN"));
    assert_eq!(line.field("code"), "55P03");

    gate.open();
    running.answer().await.assert_none_failed();
}

#[tokio::test]
async fn the_notification_that_came_before_the_commit_changes_nothing_after_it() {
    let gate = Gate::closed();
    let (world, listener, running) = worker_in_mid_send(&gate).await;
    gate.open();
    running.answer().await.assert_none_failed();
    let claim = world.database.claim("early").await;

    listener
        .hears(&notification::of_email("send", &world.ses.only_email()))
        .await;

    assert_eq!(world.database.claim("early").await, claim);
    assert_eq!(claim.expect("a claim").settled_by, "worker");
    assert_eq!(listener.database.told().await.len(), 4);
}

#[tokio::test]
async fn the_notification_that_came_before_the_commit_completes_the_claim_of_a_worker_that_died() {
    let gate = Gate::closed();
    let (world, listener, _running) = worker_in_mid_send(&gate).await;
    world.sandbox.kill().await;
    world.database.transactions_over().await;

    listener
        .hears(&notification::of_email("send", &world.ses.only_email()))
        .await;

    let claim = world.database.claim("early").await.expect("a claim");
    assert_eq!(claim.settled_by, "ses");
}

/// SES doesn't tell the payload, but it tells the type.
#[tokio::test]
async fn a_claim_that_ses_settled_is_of_its_type_of_event_alone() {
    let (world, listener) = Listener::with_worker().await;
    listener.hears(&send("order-1001", "id-1")).await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &order_placed(1001))]))
        .await
        .assert_failed(&["m-1"]);

    let line = world.sandbox.logs.outcome_of_message("m-1").await;
    assert_eq!((line.outcome(), line.level()), ("refused", "ERROR"));
    assert_eq!(line.field("reason"), "key_reused");
}

/// SES doesn't tell the payload, but the event's own message does when it comes again.
#[tokio::test]
async fn the_first_message_after_ses_settled_a_claim_tells_its_payload() {
    let (world, listener) = Listener::with_worker().await;
    for key in ["told", "told-in-one-batch"] {
        listener.hears(&send(key, &format!("id-{key}"))).await;
    }
    let other = |key| status_changed(key, 3, "interview", "offer");

    let again = batch([Record::new("m-1", &interview("told"))]);
    world.sandbox.invoke(again).await.assert_none_failed();
    let answer = world
        .sandbox
        .invoke(batch([
            Record::new("m-2", &other("told")),
            Record::new("m-3", &interview("told")),
            Record::new("m-4", &interview("told-in-one-batch")),
            Record::new("m-5", &other("told-in-one-batch")),
        ]))
        .await;

    answer.assert_failed(&["m-2", "m-5"]);
    for message in ["m-2", "m-5"] {
        let line = world.sandbox.logs.outcome_of_message(message).await;
        assert_eq!(line.field("reason"), "key_reused", "{message}");
    }
    for message in ["m-1", "m-3", "m-4"] {
        let line = world.sandbox.logs.outcome_of_message(message).await;
        assert_eq!(line.outcome(), "duplicate", "{message}");
    }
    let claim = listener.database.claim("told").await.expect("a claim");
    assert_eq!(
        (claim.outcome.as_str(), claim.settled_by.as_str()),
        ("sent", "ses")
    );
    world.ses.assert_requests(0);
}

/// Whom the email would be for doesn't matter any more.
#[tokio::test]
async fn an_event_that_ses_settled_is_a_duplicate_though_the_query_for_its_recipient_fails() {
    let (world, listener) = Listener::with_worker().await;
    listener.hears(&send("settled", "id-1")).await;
    world
        .database
        .execute("ALTER TABLE jobs_application RENAME TO jobs_former_application")
        .await;

    world.sandbox.handles("m-1", &interview("settled")).await;

    let line = world.sandbox.logs.outcome_of("settled").await;
    assert_eq!(line.outcome(), "duplicate");
    let other = status_changed("settled", 3, "interview", "offer");
    world.sandbox.reports("m-2", &other).await;
    let line = world.sandbox.logs.outcome_of_message("m-2").await;
    assert_eq!(line.field("reason"), "key_reused");
}
