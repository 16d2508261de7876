//! One email for each event, however often, in however many messages and at however many workers it arrives.

use std::time::Duration;

use serde_json::json;

use crate::support::event::{
    Record, batch, in_eventbridge_envelope, in_sns_envelope, interview, order_placed,
    status_changed,
};
use crate::support::gate::Gate;
use crate::support::mode::Mode;
use crate::support::proxy::Then;
use crate::support::ses::Reply;
use crate::support::world::World;

#[tokio::test]
async fn an_event_becomes_one_email_one_row_and_one_line() {
    let world = World::start().await;

    let email = world.email_for(&interview("first")).await;

    let claim = world.database.claim("first").await.expect("a claim");
    assert_eq!(claim.event_type, "application.status_changed");
    assert_eq!(claim.outcome, "sent");
    assert_eq!(claim.settled_by, "worker");
    assert_eq!(claim.ses_message_id, Some(email.message_id));
    assert_eq!(claim.payload_sha256.len(), 32);
    assert_eq!(
        world.sandbox.logs.outcome_of("first").await.outcome(),
        "sent"
    );
}

#[tokio::test]
async fn the_same_event_twice_in_one_batch_is_one_email() {
    let world = World::start().await;
    let event = interview("twice");

    let answer = world
        .sandbox
        .invoke(batch([
            Record::new("m-1", &event),
            Record::new("m-2", &event),
        ]))
        .await;

    answer.assert_none_failed();
    world.ses.assert_requests(1);
    world.database.assert_claims(&[("twice", "sent")]).await;
    let lines = world.sandbox.logs.outcomes_of("twice", 2).await;
    let mut outcomes: Vec<&str> = lines.iter().map(|line| line.outcome()).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["duplicate", "sent"]);
}

#[tokio::test]
async fn the_same_event_twice_in_two_batches_is_one_email() {
    let world = World::start().await;
    let event = interview("twice");

    world.sandbox.handles("m-1", &event).await;
    let claim = world.database.claim("twice").await;
    world.sandbox.handles("m-2", &event).await;

    world.ses.assert_requests(1);
    assert_eq!(
        world.database.claim("twice").await,
        claim,
        "a duplicate changes nothing"
    );
    let lines = world.sandbox.logs.outcomes_of("twice", 2).await;
    assert_eq!(
        (lines[1].outcome(), lines[1].level()),
        ("duplicate", "INFO")
    );
}

#[tokio::test]
async fn an_event_twice_in_a_batch_whose_first_send_fails_is_neither_lost_nor_sent_twice() {
    let world = World::start().await;
    let event = interview("twice");
    world.ses.reply_next(Reply::refuse(
        400,
        "SendingPausedException",
        "Email sending is disabled.",
    ));
    let records = [Record::new("m-1", &event), Record::new("m-2", &event)];

    let answer = world.sandbox.invoke(batch(records.clone())).await;
    assert!(!answer.failed.is_empty(), "the one that failed is reported");
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    world.ses.assert_emails(1);
    world.database.assert_claims(&[("twice", "sent")]).await;
}

#[tokio::test]
async fn a_batch_full_of_one_event_is_one_email() {
    let world = World::start().await;
    let event = interview("many");

    let records = (1..=10).map(|number| Record::new(&format!("m-{number}"), &event));
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    world.ses.assert_requests(1);
}

#[tokio::test]
async fn two_workers_at_the_same_moment_send_one_email() {
    let world = World::start_in(Mode::Transaction).await;
    let other = world.another_sandbox().await;
    let event = interview("contended");
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));

    let first = world.sandbox.begin(batch([Record::new("m-1", &event)]));
    world.ses.received(1).await;
    let second = other.begin(batch([Record::new("m-2", &event)]));
    world.database.sessions_blocked(1).await;
    gate.open();

    first.answer().await.assert_none_failed();
    second.answer().await.assert_none_failed();
    world.ses.assert_requests(1);
    assert_eq!(
        other.logs.outcome_of("contended").await.outcome(),
        "duplicate"
    );
}

#[tokio::test]
async fn when_the_first_of_two_workers_fails_the_one_that_waited_sends() {
    let world = World::start_in(Mode::Transaction).await;
    let other = world.another_sandbox().await;
    let event = interview("contended");
    let gate = Gate::closed();
    world.ses.reply_next(
        Reply::refuse(404, "NotFoundException", "No such configuration set.").after(&gate),
    );

    let first = world.sandbox.begin(batch([Record::new("m-1", &event)]));
    world.ses.received(1).await;
    let second = other.begin(batch([Record::new("m-2", &event)]));
    world.database.sessions_blocked(1).await;
    gate.open();

    first.answer().await.assert_failed(&["m-1"]);
    second.answer().await.assert_none_failed();
    world.ses.assert_emails(1);
    world.database.assert_claims(&[("contended", "sent")]).await;
}

#[tokio::test]
async fn a_worker_that_waits_for_another_in_vain_reports_its_record_before_the_deadline() {
    let world = World::start_in(Mode::Transaction).await;
    let other = world.another_sandbox().await;
    let event = interview("contended");
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));

    let first = world.sandbox.begin(batch([Record::new("m-1", &event)]));
    world.ses.received(1).await;
    let second = other.begin_within(batch([Record::new("m-2", &event)]), Duration::from_secs(8));
    world.database.sessions_blocked(1).await;
    second.answer().await.assert_failed(&["m-2"]);
    gate.open();
    first.answer().await.assert_none_failed();
    other.handles("m-2", &event).await;

    world.ses.assert_requests(1);
}

#[tokio::test]
async fn a_crash_between_send_and_delete_sends_nothing_more() {
    let world = World::start().await;
    let events = batch([
        Record::new("m-1", &interview("one")),
        Record::new("m-2", &order_placed(1001)),
        Record::new("m-3", &status_changed("gone", 9999, "reviewing", "offer")),
    ]);

    world
        .sandbox
        .invoke(events.clone())
        .await
        .assert_none_failed();
    world.sandbox.kill().await;
    let other = world.another_sandbox().await;
    other.invoke(events).await.assert_none_failed();

    world.ses.assert_requests(2);
    world
        .database
        .assert_claims(&[("gone", "skipped"), ("one", "sent"), ("order-1001", "sent")])
        .await;
    for event_id in ["one", "order-1001", "gone"] {
        assert_eq!(
            other.logs.outcome_of(event_id).await.outcome(),
            "duplicate",
            "{event_id}"
        );
    }
}

#[tokio::test]
async fn a_crash_after_postgres_committed_and_before_it_answered_sends_nothing_more() {
    let (world, proxy) = World::start_with_proxy().await;
    let event = interview("committed");
    let committed = proxy.at(Mode::of_this_run().settlement(), Then::SwallowReplies);

    let _lost = world.sandbox.begin(batch([Record::new("m-1", &event)]));
    committed.happened().await;
    world.sandbox.kill().await;
    world.another_sandbox().await.handles("m-1", &event).await;

    world.ses.assert_requests(1);
    world.database.assert_claims(&[("committed", "sent")]).await;
}

#[tokio::test]
async fn a_crash_before_the_send_leaves_the_key_free() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Transaction).await;
    let event = interview("claimed");
    let claimed = proxy.at(
        "INSERT INTO processed_events",
        Then::HoldReplies(Gate::closed()),
    );

    let _lost = world.sandbox.begin(batch([Record::new("m-1", &event)]));
    claimed.happened().await;
    world.sandbox.kill().await;
    world.another_sandbox().await.handles("m-1", &event).await;

    world.ses.assert_requests(1);
    world.database.assert_claims(&[("claimed", "sent")]).await;
}

/// The one gap of transaction mode: only SES knows that the email left.
#[tokio::test]
async fn a_crash_between_acceptance_and_commit_leaves_the_key_free() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Transaction).await;
    let event = interview("gap");
    let about_to_commit = proxy.at("COMMIT", Then::Hold(Gate::closed()));

    let _lost = world.sandbox.begin(batch([Record::new("m-1", &event)]));
    about_to_commit.happened().await;
    world.sandbox.kill().await;
    world.another_sandbox().await.handles("m-1", &event).await;

    world.ses.assert_requests(2);
    world.database.assert_claims(&[("gap", "sent")]).await;
}

#[tokio::test]
async fn a_deleted_application_is_skipped_and_stays_skipped() {
    let world = World::start().await;
    let event = status_changed("test-missing", 9999, "reviewing", "interview");

    world.sandbox.handles("m-1", &event).await;
    world.database.execute("INSERT INTO jobs_application (id, job_id, candidate_id, status) VALUES (9999, 51, 102, 'x')").await;
    world.sandbox.handles("m-2", &event).await;

    world.ses.assert_requests(0);
    world
        .database
        .assert_claims(&[("test-missing", "skipped")])
        .await;
    let lines = world.sandbox.logs.outcomes_of("test-missing", 2).await;
    assert_eq!((lines[0].outcome(), lines[0].level()), ("skipped", "WARN"));
    assert_eq!(
        (lines[1].outcome(), lines[1].level()),
        ("duplicate", "INFO")
    );
}

#[tokio::test]
async fn the_same_key_with_another_payload_is_refused() {
    let world = World::start().await;
    let offer = status_changed("reused", 3, "interview", "offer");

    world.sandbox.handles("m-1", &interview("reused")).await;
    let claim = world.database.claim("reused").await;
    world.sandbox.reports("m-2", &offer).await;

    world.ses.assert_requests(1);
    assert_eq!(world.database.claim("reused").await, claim);
    assert_eq!(
        world.sandbox.logs.outcome_of_message("m-2").await.level(),
        "ERROR"
    );
}

#[tokio::test]
async fn another_kind_of_event_under_the_same_key_is_refused() {
    let world = World::start().await;
    let other_kind = interview("order-1001");

    world.sandbox.handles("m-1", &order_placed(1001)).await;
    world.sandbox.reports("m-2", &other_kind).await;

    world.ses.assert_requests(1);
}

#[tokio::test]
async fn of_two_payloads_under_one_key_in_one_batch_one_is_sent_and_the_other_refused() {
    let world = World::start().await;
    let offer = status_changed("reused", 3, "interview", "offer");

    let answer = world
        .sandbox
        .invoke(batch([
            Record::new("m-1", &interview("reused")),
            Record::new("m-2", &offer),
        ]))
        .await;

    assert_eq!(answer.failed.len(), 1);
    world.ses.assert_requests(1);
}

#[tokio::test]
async fn the_same_event_written_in_another_way_is_a_duplicate() {
    let world = World::start().await;
    let reordered = r#"
        { "new_status" : "interview", "old_status": "reviewing",
          "application_id": 3, "event_id": "\u0074wice", "type": "application.status_changed" }"#;

    world.sandbox.handles("m-1", &interview("twice")).await;
    world
        .sandbox
        .invoke(batch([Record::with_body("m-2", reordered)]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(1);
}

#[tokio::test]
async fn the_same_event_in_another_envelope_is_a_duplicate() {
    let world = World::start().await;
    let event = interview("travelled");

    for (message_id, body) in [
        ("m-1", event.clone()),
        ("m-2", in_sns_envelope(&event)),
        ("m-3", in_eventbridge_envelope(&event)),
    ] {
        world.sandbox.handles(message_id, &body).await;
    }

    world.ses.assert_requests(1);
    world.sandbox.logs.outcomes_of("travelled", 3).await;
}

#[tokio::test]
async fn two_changes_of_one_application_are_two_emails() {
    let world = World::start().await;

    let answer = world
        .sandbox
        .invoke(batch([
            Record::new(
                "m-1",
                &status_changed("change-1", 3, "reviewing", "interview"),
            ),
            Record::new("m-2", &status_changed("change-2", 3, "interview", "offer")),
        ]))
        .await;

    answer.assert_none_failed();
    world.ses.assert_emails(2);
}

#[tokio::test]
async fn an_order_is_confirmed_once_though_its_event_has_no_id() {
    let world = World::start().await;
    let with_more = json!({ "type": "order.placed", "order_id": 1001 });

    world.sandbox.handles("m-1", &order_placed(1001)).await;
    world.sandbox.handles("m-2", &with_more).await;

    world.ses.assert_requests(1);
    world
        .database
        .assert_claims(&[("order-1001", "sent")])
        .await;
}
