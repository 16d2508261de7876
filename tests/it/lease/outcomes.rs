//! What becomes of the rows of a batch in which each record ends in another way.

use crate::support::event::{Record, batch, interview, status_changed};
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{message, named, start, start_with};

fn paused() -> Reply {
    Reply::refuse(400, "SendingPausedException", "Email sending is disabled.")
}

#[tokio::test]
async fn what_was_not_sent_leaves_no_row_and_comes_back() {
    let world = start().await;
    world.ses.reply_to_event("paused", paused());

    world
        .sandbox
        .invoke(batch(["paused", "sent"].map(named)))
        .await
        .assert_failed(&["paused"]);
    world.database.assert_claims(&[("sent", "sent")]).await;
    assert_eq!(world.sqs.delays_of("paused").len(), 1);
    world
        .sandbox
        .invoke(batch([named("paused")]))
        .await
        .assert_none_failed();

    world.ses.assert_emails(2);
}

#[tokio::test]
async fn what_is_refused_leaves_no_row_and_goes_to_the_dead_letter_queue() {
    let world = World::start_with_sqs(|environment, sqs| {
        environment
            .with("CLAIM_MODE", "lease")
            .with("DEAD_LETTER_QUEUE_URL", &sqs.queue_url("dead-letters"))
    })
    .await;
    world
        .ses
        .reply_to_event("refused", Reply::refuse(400, "MessageRejected", "No."));

    world
        .sandbox
        .invoke(batch(["refused", "sent"].map(named)))
        .await
        .assert_none_failed();

    assert_eq!(world.sqs.messages().len(), 1);
    world.database.assert_claims(&[("sent", "sent")]).await;
}

#[tokio::test]
async fn what_is_skipped_or_withheld_has_its_row() {
    let world =
        start_with(|environment| environment.with("RECIPIENT_ALLOW_LIST", "@example.org")).await;
    let gone = status_changed("gone", 9999, "reviewing", "offer");

    world
        .sandbox
        .invoke(batch([Record::new("gone", &gone), named("kept-back")]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(0);
    world
        .database
        .assert_claims(&[("gone", "skipped"), ("kept-back", "withheld")])
        .await;
}

#[tokio::test]
async fn each_ending_in_one_batch_has_its_own_row_or_none() {
    let world = start().await;
    world
        .sandbox
        .invoke(batch([named("seen")]))
        .await
        .assert_none_failed();
    world
        .ses
        .reply_to_event("refused", Reply::refuse(400, "MessageRejected", "No."));
    world.ses.reply_to_event("paused", paused());
    world
        .ses
        .reply_to_event("unclear", Reply::accept_without_reply());
    let gone = status_changed("gone", 9999, "reviewing", "offer");
    let reused = status_changed("seen", 3, "interview", "offer");

    let records = [
        named("sent"),
        named("refused"),
        named("paused"),
        named("unclear"),
        message("duplicate", "seen"),
        Record::new("gone", &gone),
        Record::new("reused", &reused),
        Record::with_body("broken", "not json"),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["refused", "paused", "unclear", "reused", "broken"]);

    world
        .database
        .assert_claims(&[
            ("gone", "skipped"),
            ("seen", "sent"),
            ("sent", "sent"),
            ("unclear", "sending"),
        ])
        .await;
}

/// What is settled keeps no lease, and who counts attempts of old rows by their lease finds none.
#[tokio::test]
async fn a_settled_row_has_no_lease() {
    let world = start().await;
    let gone = status_changed("gone", 9999, "reviewing", "offer");
    let records = [
        Record::new("m-1", &interview("sent")),
        Record::new("m-2", &gone),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    let leases = "SELECT count(*) FROM processed_events WHERE lease_until IS NOT NULL";
    let leases: i64 = world.database.query(leases, &[]).await[0].get(0);
    assert_eq!(leases, 0);
    assert_eq!(world.database.claims().await.len(), 2);
}
