//! A live worker that never learns whether SES took the email: its row stays, and is in doubt from then on.

use std::time::Duration;

use crate::support::environment::Environment;
use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::notification;
use crate::support::proxy::Then;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{
    IN_DOUBT, assert_ending, delay_of, ending, lease_left, message, named, pass_seconds, start,
    start_with,
};

/// SES accepted the email of event `unclear` for message `m-1`, and its reply was lost.
async fn world_in_doubt(in_doubt_wait: &str) -> World {
    let world = start_with(|environment| environment.with("IN_DOUBT_WAIT", in_doubt_wait)).await;
    world.ses.reply_next(Reply::accept_without_reply());
    world
        .sandbox
        .invoke(batch([message("m-1", "unclear")]))
        .await
        .assert_failed(&["m-1"]);
    world.ses.assert_emails(1);
    world
}

#[tokio::test]
async fn it_is_in_doubt_from_now_on_and_not_from_the_end_of_its_lease() {
    let world = world_in_doubt("300").await;

    assert!(lease_left(&world, "unclear").await <= 0.0);
    world
        .database
        .assert_claims(&[("unclear", "sending")])
        .await;
    let (outcome, level, _) = ending(&world.sandbox, "m-1").await;
    assert_eq!((outcome.as_str(), level.as_str()), ("unknown", "WARN"));
    assert_eq!(delay_of(&world, "m-1"), 300.0);
}

/// In transaction mode the message itself may try again at once, since SQS alone remembers the doubt. Here the ledger
/// does, for all messages.
#[tokio::test]
async fn every_message_of_the_event_waits_also_its_own() {
    let world = world_in_doubt("300").await;
    pass_seconds(&world, 100).await;

    for (number, message_id) in ["m-2", "m-1"].into_iter().enumerate() {
        world
            .sandbox
            .invoke(batch([message(message_id, "unclear")]))
            .await
            .assert_failed(&[message_id]);
        let delays = world.sqs.delays_of(message_id);
        let delay = *delays.last().expect("it was told") as f64;
        let left = 300.0 + lease_left(&world, "unclear").await;
        assert!(
            delay >= left && delay <= 200.0,
            "{number}: {delay} s of {left}"
        );
    }
    assert_ending(&ending(&world.sandbox, "m-2").await, IN_DOUBT);
    world.ses.assert_requests(1);
}

#[tokio::test]
async fn after_the_wait_any_message_of_the_event_sends() {
    let world = world_in_doubt("300").await;
    pass_seconds(&world, 300).await;

    world
        .sandbox
        .invoke(batch([message("m-2", "unclear")]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(2);
    world.database.assert_claims(&[("unclear", "sent")]).await;
}

#[tokio::test]
async fn without_a_wait_any_message_of_the_event_sends_at_once() {
    let world = world_in_doubt("0").await;

    world
        .sandbox
        .invoke(batch([message("m-2", "unclear")]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(2);
}

#[tokio::test]
async fn ses_word_in_the_meantime_makes_every_message_a_duplicate() {
    let world = world_in_doubt("300").await;
    let environment = Environment::feedback(&world.database.url(), &world.sqs);
    let feedback = Sandbox::start_function("feedback", &environment).await;
    let email = world.ses.only_email();

    let told = notification::of_email("send", &email);
    feedback
        .invoke(batch([notification::record("n-1", &told)]))
        .await
        .assert_none_failed();

    let records = ["m-1", "m-2", "m-3"].map(|message_id| message(message_id, "unclear"));
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();
    world.ses.assert_requests(1);
    let claim = world.database.claim("unclear").await.expect("a claim");
    assert_eq!(claim.settled_by, "ses");
    assert_eq!(claim.ses_message_id, Some(email.message_id));
}

#[tokio::test]
async fn the_other_sends_of_the_batch_are_settled() {
    let world = start().await;
    world
        .ses
        .reply_to_event("unclear", Reply::accept_without_reply());

    world
        .sandbox
        .invoke(batch(["before", "unclear", "then"].map(named)))
        .await
        .assert_failed(&["unclear"]);

    world
        .database
        .assert_claims(&[("before", "sent"), ("then", "sent"), ("unclear", "sending")])
        .await;
}

#[tokio::test]
async fn a_reply_that_comes_too_late_changes_nothing() {
    let world = start().await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&gate));

    let running = world
        .sandbox
        .begin_within(batch([named("late")]), Duration::from_secs(8));
    running.answer().await.assert_failed(&["late"]);
    world.database.assert_claims(&[("late", "sending")]).await;
    gate.open();
    // The connection on which it might have come is used, or given up, by the next.
    world
        .sandbox
        .invoke(batch([named("next")]))
        .await
        .assert_none_failed();

    world
        .database
        .assert_claims(&[("late", "sending"), ("next", "sent")])
        .await;
    assert!(lease_left(&world, "late").await <= 0.0);
}

#[tokio::test]
async fn a_doubt_that_could_not_be_written_is_written_on_another_connection() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    world.ses.reply_next(Reply::accept_without_reply());
    let cut = proxy.at("SET lease_until", Then::Cut);

    world
        .sandbox
        .invoke(batch([named("unclear")]))
        .await
        .assert_failed(&["unclear"]);
    cut.happened().await;

    assert!(lease_left(&world, "unclear").await <= 0.0);
}

#[tokio::test]
async fn a_second_try_that_is_not_sent_frees_the_key() {
    let world = world_in_doubt("300").await;
    pass_seconds(&world, 300).await;
    world.ses.reply_next(Reply::refuse(
        400,
        "SendingPausedException",
        "Email sending is disabled.",
    ));

    world
        .sandbox
        .invoke(batch([message("m-1", "unclear")]))
        .await
        .assert_failed(&["m-1"]);

    world.database.assert_claims(&[]).await;
    world.ses.assert_emails(1);
}
