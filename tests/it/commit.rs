//! From the moment SES has accepted, nothing else may fail the record: the email left.

use std::time::Duration;

use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::proxy::{End, Then};
use crate::support::ses::Reply;
use crate::support::world::World;

/// One email, and a claim that tells of it.
async fn assert_sent_and_claimed(world: &World, event_id: &str) {
    let email = world.ses.only_email();
    world.ses.assert_requests(1);
    let claim = world.database.claim(event_id).await.expect("a claim");
    assert_eq!(
        (claim.outcome.as_str(), claim.ses_message_id),
        ("sent", Some(email.message_id))
    );
}

/// Sends one event while this happens to what settles it; the record must not be reported.
async fn commit_while(then: Then) -> World {
    let (world, proxy) = World::start_with_proxy().await;
    let at_the_commit = proxy.at(Mode::of_this_run().settlement(), then);

    let running = world.sandbox.begin_within(
        batch([Record::new("m-1", &interview("left"))]),
        Duration::from_secs(20),
    );
    at_the_commit.happened().await;
    running.answer().await.assert_none_failed();
    world
}

#[tokio::test]
async fn a_commit_whose_connection_breaks_before_the_answer_fails_nothing() {
    let world = commit_while(Then::CutReplies).await;
    assert_sent_and_claimed(&world, "left").await;
}

#[tokio::test]
async fn a_commit_whose_answer_never_comes_fails_nothing() {
    let world = commit_while(Then::SwallowReplies).await;
    assert_sent_and_claimed(&world, "left").await;
}

#[tokio::test]
async fn a_commit_that_never_reached_postgres_is_made_good_on_another_connection() {
    let world = commit_while(Then::Cut).await;
    assert_sent_and_claimed(&world, "left").await;
}

/// Postgres doesn't know that the connection is dead: the lost transaction holds the key until it is told.
#[tokio::test]
async fn a_commit_lost_in_a_silent_network_is_made_good_on_another_connection() {
    let world = commit_while(Then::Swallow).await;
    assert_sent_and_claimed(&world, "left").await;
}

#[tokio::test]
async fn a_session_that_postgres_ended_during_the_send_is_made_good_on_another_connection() {
    let world = World::start().await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&gate));

    let running = world
        .sandbox
        .begin(batch([Record::new("m-1", &interview("left"))]));
    world.ses.received(1).await;
    match Mode::of_this_run() {
        Mode::Transaction => world.database.end_open_transactions().await,
        Mode::Lease => world.database.end_other_sessions().await,
    }
    gate.open();

    running.answer().await.assert_none_failed();
    assert_sent_and_claimed(&world, "left").await;
}

#[tokio::test]
async fn a_claim_that_was_made_good_makes_the_next_delivery_a_duplicate() {
    let world = commit_while(Then::Cut).await;

    world
        .sandbox
        .invoke(batch([Record::new("m-2", &interview("left"))]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(1);
}

#[tokio::test]
async fn an_outage_of_postgres_after_the_send_is_waited_out() {
    let (world, proxy) = World::start_with_proxy().await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&gate));

    let running = world
        .sandbox
        .begin(batch([Record::new("m-1", &interview("left"))]));
    world.ses.received(1).await;
    // Two attempts to connect fail before the next is let through.
    let attempts = [proxy.at("user", Then::Cut), proxy.at("user", Then::Cut)];
    proxy.end_connections(End::Reset).await;
    gate.open();
    for attempt in attempts {
        attempt.happened().await;
    }

    running.answer().await.assert_none_failed();
    assert_sent_and_claimed(&world, "left").await;
}

#[tokio::test]
async fn a_claim_that_cannot_be_written_until_the_deadline_counts_as_done_with_an_error_line() {
    let (world, proxy) = World::start_with_proxy().await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&gate));

    let events = batch([Record::new("m-1", &interview("left"))]);
    let running = world.sandbox.begin_within(events, Duration::from_secs(8));
    world.ses.received(1).await;
    proxy.refuse_connections().await;
    proxy.end_connections(End::Reset).await;
    gate.open();

    running.answer().await.assert_none_failed();
    world.ses.assert_requests(1);
    world.assert_claims_and_doubts(&[], &["left"]).await;
    let is_error = |line: &crate::support::logs::Line| {
        line.level() == "ERROR" && line.field("event_id") == "left"
    };
    world
        .sandbox
        .logs
        .wait_for("an ERROR line with the event's id", is_error)
        .await;
}

#[tokio::test]
async fn a_log_that_cannot_be_written_does_not_fail_a_record() {
    let world = World::start().await;
    let sandbox = Sandbox::start_without_output(&world.environment).await;

    sandbox
        .invoke(batch([Record::new("m-1", &interview("unseen"))]))
        .await
        .assert_none_failed();
    sandbox
        .invoke(batch([Record::new("m-2", &interview("unseen-too"))]))
        .await
        .assert_none_failed();

    world.ses.assert_emails(2);
    world
        .database
        .assert_claims(&[("unseen", "sent"), ("unseen-too", "sent")])
        .await;
}
