//! A worker in transaction mode that finds the rows of one in lease mode.

use crate::support::environment::Environment;
use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{
    IN_DOUBT, IN_PROGRESS, assert_ending, delay_of, ending, lease_left, message, pass_seconds,
    start,
};

/// A worker in lease mode died when SES had accepted its email of event `leased`; and one in transaction mode.
async fn world_after_a_crash(change: impl FnOnce(Environment) -> Environment) -> (World, Sandbox) {
    let world = start().await;
    let environment = world.environment.clone();
    let environment = change(environment.with("CLAIM_MODE", Mode::Transaction.name()));
    let other = Sandbox::start(&environment).await;
    world.ses.reply_next(Reply::accept().after(&Gate::closed()));
    let _lost = world.sandbox.begin(batch([message("m-1", "leased")]));
    world.ses.received(1).await;
    world.sandbox.kill().await;
    (world, other)
}

/// All that the row says.
async fn row(world: &World) -> String {
    let row =
        "SELECT to_jsonb(processed_events)::text FROM processed_events WHERE event_id = 'leased'";
    world.database.query(row, &[]).await[0].get(0)
}

#[tokio::test]
async fn transaction_mode_finds_a_live_lease_in_progress_and_one_that_ran_out_in_doubt() {
    let (world, other) = world_after_a_crash(|environment| environment).await;

    for (message_id, seconds, expected, wait) in
        [("m-2", 0, IN_PROGRESS, 0.0), ("m-3", 40, IN_DOUBT, 120.0)]
    {
        pass_seconds(&world, seconds).await;
        let before = row(&world).await;
        other
            .invoke(batch([message(message_id, "leased")]))
            .await
            .assert_failed(&[message_id]);

        assert_ending(&ending(&other, message_id).await, expected);
        let left = wait + lease_left(&world, "leased").await;
        let delay = delay_of(&world, message_id);
        assert!(delay >= left && delay <= left + 5.0, "{delay} s of {left}");
        assert_eq!(row(&world).await, before, "what is found is not changed");
    }
    world.ses.assert_requests(1);
}

#[tokio::test]
async fn transaction_mode_takes_an_overdue_row_over_and_sends() {
    let (world, other) = world_after_a_crash(|environment| environment).await;
    pass_seconds(&world, 40 + 120).await;

    other
        .invoke(batch([message("m-2", "leased")]))
        .await
        .assert_none_failed();

    world.ses.assert_emails(2);
    let claim = world.database.claim("leased").await.expect("a claim");
    assert_eq!(claim.outcome, "sent");
    assert_eq!(
        claim.ses_message_id,
        Some(world.ses.emails()[1].message_id.clone())
    );
}

#[tokio::test]
async fn transaction_mode_holds_an_overdue_row_if_its_own_setting_says_so() {
    let (world, other) =
        world_after_a_crash(|environment| environment.with("IN_DOUBT", "hold")).await;
    pass_seconds(&world, 40 + 120).await;

    for message_id in ["m-2", "m-3"] {
        other
            .invoke(batch([message(message_id, "leased")]))
            .await
            .assert_failed(&[message_id]);
        let held = ("held", "ERROR", Some("held"));
        assert_ending(&ending(&other, message_id).await, held);
    }

    world.ses.assert_requests(1);
    world.database.assert_claims(&[("leased", "unknown")]).await;
}

#[tokio::test]
async fn what_transaction_mode_took_over_and_did_not_send_is_as_it_was() {
    let (world, other) = world_after_a_crash(|environment| environment).await;
    pass_seconds(&world, 40 + 120).await;
    let before = row(&world).await;
    world.ses.reply_next(Reply::refuse(
        400,
        "SendingPausedException",
        "Email sending is disabled.",
    ));

    other
        .invoke(batch([message("m-2", "leased")]))
        .await
        .assert_failed(&["m-2"]);

    assert_eq!(row(&world).await, before);
}

#[tokio::test]
async fn what_transaction_mode_took_over_and_sent_without_learning_of_it_is_in_doubt_from_now_on() {
    let (world, other) = world_after_a_crash(|environment| environment).await;
    pass_seconds(&world, 40 + 120).await;
    world.ses.reply_next(Reply::accept_without_reply());

    other
        .invoke(batch([message("m-2", "leased")]))
        .await
        .assert_failed(&["m-2"]);

    world.database.assert_claims(&[("leased", "sending")]).await;
    let left = lease_left(&world, "leased").await;
    assert!((-30.0..=0.0).contains(&left), "{left} s");
    let lease_mode = world.sandbox_in(Mode::Lease).await;
    for (sandbox, message_id) in [(&other, "m-3"), (&lease_mode, "m-4")] {
        sandbox
            .invoke(batch([message(message_id, "leased")]))
            .await
            .assert_failed(&[message_id]);
        assert_ending(&ending(sandbox, message_id).await, IN_DOUBT);
    }
    world.ses.assert_requests(2);
}
