//! What comes late: a claim that was given up, a refusal when there is hardly any time left, a worker that was frozen.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::proxy::Then;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{message, named, pass_seconds, start_with};

async fn refused_with_a_silent_dead_letter_queue(mode: Mode) -> World {
    let world = World::start_with_sqs(|environment, sqs| {
        environment
            .with("CLAIM_MODE", mode.name())
            .with("IN_DOUBT", "hold")
            .with("DEAD_LETTER_QUEUE_URL", &sqs.queue_url("dead-letters"))
    })
    .await;
    world.sqs.fall_silent();
    let refused = Reply::refuse(400, "MessageRejected", "Not this one.");
    world.ses.reply_always(refused);
    world
        .sandbox
        .invoke_within(batch([message("m-1", "refused")]), Duration::from_secs(8))
        .await
        .assert_failed(&["m-1"]);
    world
}

#[tokio::test]
async fn a_refused_event_is_free_though_the_dead_letter_queue_is_silent() {
    for mode in [Mode::Transaction, Mode::Lease] {
        let world = refused_with_a_silent_dead_letter_queue(mode).await;
        world.database.assert_claims(&[]).await;
    }
}

#[tokio::test]
async fn an_event_that_ses_refused_late_is_free_though_the_dead_letter_queue_is_silent() {
    let world = World::start_with_sqs(|environment, sqs| {
        environment
            .with("CLAIM_MODE", "lease")
            .with("IN_DOUBT", "hold")
            .with("DEAD_LETTER_QUEUE_URL", &sqs.queue_url("dead-letters"))
    })
    .await;
    world.sqs.fall_silent();
    let gate = Gate::closed();
    let refused = Reply::refuse(400, "MessageRejected", "Not this one.");
    world.ses.reply_always(refused.after(&gate));
    let began = Instant::now();
    let running = world
        .sandbox
        .begin_within(batch([message("m-1", "refused")]), Duration::from_secs(8));
    world.ses.received(1).await;
    // SES has until 1.5 s before the deadline, and the dead-letter queue may take 2 s.
    tokio::time::sleep_until(began + Duration::from_millis(5700)).await;
    gate.open();
    running.answer().await.assert_failed(&["m-1"]);
    world.database.assert_claims(&[]).await;
}

/// Postgres was busy with a lock on a table until the worker had given up.
#[tokio::test]
async fn a_claim_that_was_given_up_does_not_happen_later() {
    let world = start_with(|environment| environment.with("IN_DOUBT", "hold")).await;
    world
        .sandbox
        .invoke(batch([named("warm-up")]))
        .await
        .assert_none_failed();
    let neighbour = world.database.neighbour().await;
    neighbour
        .batch_execute("BEGIN; LOCK TABLE sends_in_doubt")
        .await
        .unwrap();
    world
        .sandbox
        .invoke_within(batch([named("late")]), Duration::from_secs(15))
        .await
        .assert_failed(&["late"]);
    neighbour.batch_execute("ROLLBACK").await.unwrap();

    let busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user \
                AND pid <> pg_backend_pid() AND state = 'active'";
    world
        .database
        .until("the given-up claims' end", busy, 0)
        .await;
    world.database.assert_claims(&[("warm-up", "sent")]).await;
    world
        .sandbox
        .invoke(batch([message("again", "late")]))
        .await
        .assert_none_failed();
    world.ses.assert_emails(2);
}

/// Its deadline is over when it goes on.
#[tokio::test]
async fn a_worker_that_thaws_after_its_deadline_sends_nothing() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    let gate = Gate::closed();
    let held = proxy.at("SELECT event.event_id", Then::HoldReplies(gate.clone()));
    let running = world
        .sandbox
        .begin_within(batch([message("m-1", "frozen")]), Duration::from_secs(8));
    held.happened().await;
    world.sandbox.freeze();
    tokio::time::sleep(Duration::from_secs(9)).await;
    gate.open();
    world.sandbox.thaw();
    let _ = running.value().await;
    world.ses.assert_requests(0);
}

/// A worker in transaction mode finds a send in doubt whose email's query fails by now.
async fn overdue_with_a_broken_query(in_doubt: &str) -> (World, Sandbox) {
    let world = start_with(|environment| environment.with("IN_DOUBT", in_doubt)).await;
    let environment = world.environment.clone();
    let other = Sandbox::start(&environment.with("CLAIM_MODE", "transaction")).await;
    world.ses.reply_next(Reply::accept().after(&Gate::closed()));
    let _lost = world.sandbox.begin(batch([message("m-1", "overdue")]));
    world.ses.received(1).await;
    world.sandbox.kill().await;
    pass_seconds(&world, 40 + 120).await;
    let rename = "ALTER TABLE jobs_company RENAME TO elsewhere";
    world.database.execute(rename).await;
    other
        .invoke(batch([message("m-2", "overdue")]))
        .await
        .assert_failed(&["m-2"]);
    (world, other)
}

#[tokio::test]
async fn transaction_mode_tells_of_the_query_that_failed_for_a_send_in_doubt() {
    let (_world, other) = overdue_with_a_broken_query("resend").await;
    let line = other.logs.outcome_of_message("m-2").await;
    assert_eq!(line.field("code"), "42P01");
    assert_eq!(line.field("reason"), "database_setup");
}

#[tokio::test]
async fn transaction_mode_holds_a_send_in_doubt_whatever_its_query_says() {
    let (world, other) = overdue_with_a_broken_query("hold").await;
    world
        .database
        .assert_claims(&[("overdue", "unknown")])
        .await;
    assert_eq!(other.logs.outcome_of_message("m-2").await.outcome(), "held");
}
