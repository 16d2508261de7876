//! A worker died: its rows are `sending`, and nobody is told. Until the lease ends they are its own; then their sends
//! are in doubt; and when SES's word has had its time, they are made again.

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
    IN_DOUBT, IN_PROGRESS, assert_ending, delay_of, ending, lease_left, message, pass_seconds,
    start_with,
};

/// Longer than a lease, shorter than a lease and the wait.
const PAST_THE_LEASE: u32 = 40;

/// A worker claimed the event `crashed` for message `m-1` and died when SES had accepted its email; and another one.
async fn world_after_a_crash() -> (World, Sandbox) {
    let world = start_with(|environment| environment.with("IN_DOUBT_WAIT", "120")).await;
    let other = world.another_sandbox().await;
    world.ses.reply_next(Reply::accept().after(&Gate::closed()));
    let _lost = world.sandbox.begin(batch([message("m-1", "crashed")]));
    world.ses.received(1).await;
    world.sandbox.kill().await;
    (world, other)
}

/// SES tells of the email, by way of `feedback`.
async fn ses_tells_of_the_first_email(world: &World) {
    let environment = Environment::feedback(&world.database.url(), &world.sqs);
    let feedback = Sandbox::start_function("feedback", &environment).await;
    let told = notification::of_email("send", &world.ses.emails()[0]);
    feedback
        .invoke(batch([notification::record("n-1", &told)]))
        .await
        .assert_none_failed();
}

#[tokio::test]
async fn until_the_lease_ends_the_event_is_in_progress() {
    let (world, other) = world_after_a_crash().await;

    other
        .invoke(batch([message("m-1", "crashed")]))
        .await
        .assert_failed(&["m-1"]);

    assert_ending(&ending(&other, "m-1").await, IN_PROGRESS);
    let left = lease_left(&world, "crashed").await;
    assert!(delay_of(&world, "m-1") >= left, "{left} s left");
    world.ses.assert_requests(1);
}

#[tokio::test]
async fn after_the_lease_it_is_in_doubt_and_comes_back_after_what_is_left_of_the_wait() {
    let (world, other) = world_after_a_crash().await;
    pass_seconds(&world, PAST_THE_LEASE).await;

    other
        .invoke(batch([message("m-1", "crashed")]))
        .await
        .assert_failed(&["m-1"]);

    assert_ending(&ending(&other, "m-1").await, IN_DOUBT);
    let left = 120.0 + lease_left(&world, "crashed").await;
    let delay = delay_of(&world, "m-1");
    assert!(
        delay >= left && delay <= 120.0,
        "{delay} s, with {left} s left"
    );
    world.ses.assert_requests(1);
    world
        .database
        .assert_claims(&[("crashed", "sending")])
        .await;
}

#[tokio::test]
async fn after_the_wait_the_email_is_sent_again() {
    let (world, other) = world_after_a_crash().await;
    pass_seconds(&world, PAST_THE_LEASE + 120).await;

    other
        .invoke(batch([message("m-1", "crashed")]))
        .await
        .assert_none_failed();

    world.ses.assert_emails(2);
    let claim = world.database.claim("crashed").await.expect("a claim");
    assert_eq!(
        claim.ses_message_id,
        Some(world.ses.emails()[1].message_id.clone())
    );
}

#[tokio::test]
async fn of_two_workers_that_find_it_overdue_at_once_one_sends() {
    let (world, other) = world_after_a_crash().await;
    let third = world.another_sandbox().await;
    pass_seconds(&world, PAST_THE_LEASE + 120).await;
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));

    let running = [
        other.begin(batch([message("m-1", "crashed")])),
        third.begin(batch([message("m-2", "crashed")])),
    ];
    world.ses.received(2).await;
    gate.open();

    let mut failed = 0;
    for running in running {
        failed += running.answer().await.failed.len();
    }
    // The second one finds a live lease, or the settled row.
    assert!(failed <= 1);
    world.ses.assert_requests(2);
}

#[tokio::test]
async fn a_crash_before_anything_was_sent_costs_the_lease_and_the_wait_and_one_email_leaves() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    let other = world.another_sandbox().await;
    let claimed = proxy.at(
        "INSERT INTO processed_events",
        Then::HoldReplies(Gate::closed()),
    );
    let _lost = world.sandbox.begin(batch([message("m-1", "crashed")]));
    claimed.happened().await;
    let rows = "SELECT count(*) FROM processed_events";
    world.database.until("the claim", rows, 1).await;
    world.sandbox.kill().await;

    for (seconds, expected) in [(0, IN_PROGRESS), (PAST_THE_LEASE, IN_DOUBT)] {
        pass_seconds(&world, seconds).await;
        let name = format!("m-after-{seconds}");
        other
            .invoke(batch([message(&name, "crashed")]))
            .await
            .assert_failed(&[&name]);
        assert_ending(&ending(&other, &name).await, expected);
    }
    world.ses.assert_requests(0);
    pass_seconds(&world, 120).await;
    other
        .invoke(batch([message("m-1", "crashed")]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(1);
    world.database.assert_claims(&[("crashed", "sent")]).await;
}

#[tokio::test]
async fn ses_word_settles_it_while_the_lease_holds_and_while_it_is_in_doubt() {
    for seconds in [0, PAST_THE_LEASE] {
        let (world, other) = world_after_a_crash().await;
        pass_seconds(&world, seconds).await;

        ses_tells_of_the_first_email(&world).await;

        let claim = world.database.claim("crashed").await.expect("a claim");
        assert_eq!(
            (claim.outcome.as_str(), claim.settled_by.as_str()),
            ("sent", "ses")
        );
        other
            .invoke(batch([message("m-1", "crashed")]))
            .await
            .assert_none_failed();
        assert_ending(&ending(&other, "m-1").await, ("duplicate", "INFO", None));
        world.ses.assert_requests(1);
    }
}

/// The attempt that took the row over tells of its own email; `feedback` tells of the first as a second one.
#[tokio::test]
async fn ses_word_that_comes_while_the_email_is_sent_again_settles_the_row_and_the_second_says_so()
{
    let (world, other) = world_after_a_crash().await;
    pass_seconds(&world, PAST_THE_LEASE + 120).await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&gate));

    let running = other.begin(batch([message("m-1", "crashed")]));
    world.ses.received(2).await;
    ses_tells_of_the_first_email(&world).await;
    gate.open();

    running.answer().await.assert_none_failed();
    let claim = world.database.claim("crashed").await.expect("a claim");
    assert_eq!(
        (claim.outcome.as_str(), claim.settled_by.as_str()),
        ("sent", "ses")
    );
    assert_eq!(
        claim.ses_message_id,
        Some(world.ses.emails()[0].message_id.clone())
    );
    let other_email = |line: &crate::support::logs::Line| super::says(line, "another email");
    let line = other.logs.wait_for("the other email", other_email).await;
    assert_eq!(line.level(), "WARN");
}
