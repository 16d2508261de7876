//! Postgres did it, or didn't, and nobody was told.

use std::time::Duration;

use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::logs::Line;
use crate::support::mode::Mode;
use crate::support::proxy::{End, Proxy, Then};
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{
    IN_PROGRESS, assert_ending, ending, lease_left, message, named, pass_seconds, says, start_with,
};

/// With its connection to Postgres open.
async fn warm_world() -> (World, Proxy) {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    world
        .sandbox
        .invoke(batch([named("warm-up")]))
        .await
        .assert_none_failed();
    (world, proxy)
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_made_again_by_the_same_worker_and_sent() {
    for lost in [Then::CutReplies, Then::SwallowReplies] {
        let (world, proxy) = warm_world().await;
        let claimed = proxy.at("INSERT INTO processed_events", lost);

        let running = world.sandbox.begin(batch(["one", "two"].map(named)));
        claimed.happened().await;
        running.answer().await.assert_none_failed();

        world.ses.assert_requests(3);
        world
            .database
            .assert_claims(&[("one", "sent"), ("two", "sent"), ("warm-up", "sent")])
            .await;
    }
}

/// Where the first claim takes so long to commit, because of a disk or a replica, say.
async fn world_of_a_slow_commit(seconds: u8) -> World {
    let world = start_with(|environment| environment.with("IN_DOUBT", "hold")).await;
    let slow = format!(
        "CREATE SEQUENCE commits;
         CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('commits') = 1 THEN PERFORM pg_sleep({seconds}); END IF;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON processed_events
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()"
    );
    world.database.execute(&slow).await;
    world
}

/// The first try is given up before it is done, and done all the same.
#[tokio::test]
async fn a_claim_that_takes_long_to_commit_is_found_by_the_same_worker_and_sent() {
    let world = world_of_a_slow_commit(10).await;

    world
        .sandbox
        .invoke(batch(["one", "two"].map(named)))
        .await
        .assert_none_failed();

    let sent = [("one", "sent"), ("two", "sent")];
    world.database.assert_claims(&sent).await;
    world.ses.assert_requests(2);
}

#[tokio::test]
async fn a_claim_that_may_be_committed_after_its_worker_gave_up_is_warned_of() {
    let world = world_of_a_slow_commit(30).await;

    world
        .sandbox
        .invoke_within(batch([named("one")]), Duration::from_secs(10))
        .await
        .assert_failed(&["one"]);

    let tells = |line: &Line| says(line, "could not be taken back");
    let line = world.sandbox.logs.wait_for("the warning", tells).await;
    assert_eq!(line.level(), "WARN");
    world.ses.assert_requests(0);
}

#[tokio::test]
async fn a_claim_that_never_reached_postgres_is_made_on_another_connection() {
    let (world, proxy) = warm_world().await;
    let cut = proxy.at("INSERT INTO processed_events", Then::Cut);

    let running = world.sandbox.begin(batch([named("one")]));
    cut.happened().await;
    running.answer().await.assert_none_failed();

    world.ses.assert_requests(2);
}

#[tokio::test]
async fn a_claim_that_cannot_be_made_again_is_taken_back() {
    let (world, proxy) = warm_world().await;
    // It stands after the first of three tries, and nobody knows.
    let tries = [
        proxy.at("INSERT INTO processed_events", Then::CutReplies),
        proxy.at("INSERT INTO processed_events", Then::Cut),
        proxy.at("INSERT INTO processed_events", Then::Cut),
    ];

    let running = world.sandbox.begin(batch(["one", "two"].map(named)));
    for attempt in tries {
        attempt.happened().await;
    }
    running.answer().await.assert_failed(&["one", "two"]);

    world.database.assert_claims(&[("warm-up", "sent")]).await;
    world.ses.assert_requests(1);
    world
        .sandbox
        .invoke(batch(["one", "two"].map(named)))
        .await
        .assert_none_failed();
    world.ses.assert_emails(3);
}

#[tokio::test]
async fn a_claim_that_cannot_even_be_taken_back_is_in_progress_until_its_lease_ends() {
    let (world, proxy) = warm_world().await;
    let claimed = proxy.at("INSERT INTO processed_events", Then::CutReplies);
    // No other connection is had.
    let _closed = [0; 20].map(|_| proxy.at("user", Then::Cut));

    let running = world.sandbox.begin(batch([message("m-1", "stuck")]));
    claimed.happened().await;
    running.answer().await.assert_failed(&["m-1"]);
    let tells = |line: &Line| says(line, "could not be taken back");
    let line = world.sandbox.logs.wait_for("the warning", tells).await;
    assert_eq!(line.level(), "WARN");
    proxy.forget_rules();

    world
        .sandbox
        .invoke(batch([message("m-2", "stuck")]))
        .await
        .assert_failed(&["m-2"]);
    assert_ending(&ending(&world.sandbox, "m-2").await, IN_PROGRESS);
    pass_seconds(&world, 40 + 120).await;
    world
        .sandbox
        .invoke(batch([message("m-2", "stuck")]))
        .await
        .assert_none_failed();
    world.ses.assert_emails(2);
}

/// Together on two connections, and then that event's own. Nothing of it was sent: its key is free again at once.
#[tokio::test]
async fn a_look_up_that_cannot_be_made_frees_the_key() {
    let (world, proxy) = warm_world().await;
    let tries = [0; 3].map(|_| proxy.at("jobs_application AS application", Then::Cut));

    let running = world.sandbox.begin(batch(["one", "two"].map(named)));
    for attempt in tries {
        attempt.happened().await;
    }
    running.answer().await.assert_failed(&["one"]);

    world
        .database
        .assert_claims(&[("two", "sent"), ("warm-up", "sent")])
        .await;
    world.ses.assert_requests(2);
}

#[tokio::test]
async fn a_release_that_was_lost_is_made_on_another_connection() {
    for lost in [Then::Cut, Then::CutReplies] {
        let (world, proxy) = warm_world().await;
        world.ses.reply_next(Reply::refuse(
            400,
            "SendingPausedException",
            "Email sending is disabled.",
        ));
        let released = proxy.at("DELETE FROM processed_events", lost);

        let running = world.sandbox.begin(batch([named("paused")]));
        released.happened().await;
        running.answer().await.assert_failed(&["paused"]);

        world.database.assert_claims(&[("warm-up", "sent")]).await;
    }
}

#[tokio::test]
async fn a_settlement_that_is_never_written_is_acknowledged_with_an_error_line_and_its_row_is_in_doubt_later()
 {
    let (world, proxy) = warm_world().await;
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));

    let events = batch(["one", "two"].map(named));
    let running = world.sandbox.begin_within(events, Duration::from_secs(8));
    world.ses.received(3).await;
    proxy.refuse_connections().await;
    proxy.end_connections(End::Reset).await;
    gate.open();

    running.answer().await.assert_none_failed();
    for event_id in ["one", "two"] {
        let is_error = |line: &Line| line.level() == "ERROR" && line.field("event_id") == event_id;
        let what = "an ERROR line with the event's id";
        world.sandbox.logs.wait_for(what, is_error).await;
        assert!(lease_left(&world, event_id).await > 0.0);
    }
    world
        .database
        .assert_claims(&[("one", "sending"), ("two", "sending"), ("warm-up", "sent")])
        .await;
}
