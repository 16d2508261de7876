//! Workers in both modes on one ledger and one queue, as while a deployment changes the mode: what lease mode finds of
//! transaction mode, and both at once. The other direction is in `found_by_transactions`.

use std::time::Duration;

use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::mode::Mode;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{IN_DOUBT, IN_PROGRESS, assert_ending, delay_of, ending, message, named};

#[tokio::test]
async fn lease_mode_finds_the_key_of_an_open_transaction_in_progress_and_sends_the_others_at_once()
{
    let world = World::start_in(Mode::Transaction).await;
    let other = world.sandbox_in(Mode::Lease).await;
    let gate = Gate::closed();
    world
        .ses
        .reply_to_event("claimed", Reply::accept().after(&gate));

    let running = world.sandbox.begin(batch([message("m-1", "claimed")]));
    world.ses.received(1).await;
    other
        .invoke(batch([message("m-2", "claimed"), named("a"), named("z")]))
        .await
        .assert_failed(&["m-2"]);

    assert_ending(&ending(&other, "m-2").await, IN_PROGRESS);
    world
        .database
        .assert_claims(&[("a", "sent"), ("z", "sent")])
        .await;
    gate.open();
    running.answer().await.assert_none_failed();
    other
        .invoke(batch([message("m-2", "claimed")]))
        .await
        .assert_none_failed();
    world.ses.assert_requests(3);
}

#[tokio::test]
async fn lease_mode_heeds_a_mark_that_transaction_mode_left_before() {
    let world = World::start_in(Mode::Transaction).await;
    let other = world.sandbox_in(Mode::Lease).await;
    world.ses.reply_next(Reply::accept_without_reply());
    world
        .sandbox
        .invoke(batch([message("m-1", "unclear")]))
        .await
        .assert_failed(&["m-1"]);

    // It is only read: nothing is claimed that would have to be given back.
    let untouched = "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
                     BEGIN RAISE EXCEPTION 'touched' USING ERRCODE = '42501'; END $$;
                     CREATE TRIGGER touch BEFORE INSERT ON processed_events
                         FOR EACH ROW WHEN (NEW.event_id = 'unclear') EXECUTE FUNCTION touch()";
    world.database.execute(untouched).await;

    other
        .invoke(batch([message("m-2", "unclear"), named("clear")]))
        .await
        .assert_failed(&["m-2"]);

    assert_ending(&ending(&other, "m-2").await, IN_DOUBT);
    world
        .database
        .execute("DROP TRIGGER touch ON processed_events")
        .await;
    let delay = delay_of(&world, "m-2");
    assert!((110.0..=120.0).contains(&delay), "{delay} s");
    world.database.assert_claims(&[("clear", "sent")]).await;
    // The message that the mark is of was kept back by SQS, and is tried.
    other
        .invoke(batch([message("m-1", "unclear")]))
        .await
        .assert_none_failed();
    world.ses.assert_requests(3);
}

/// The statement that claims began before the mark was there, and does not see it.
#[tokio::test]
async fn lease_mode_heeds_a_mark_that_was_left_while_its_claim_waited() {
    let world = World::start_in(Mode::Transaction).await;
    let other = world.sandbox_in(Mode::Lease).await;
    let gate = Gate::closed();
    world
        .ses
        .reply_next(Reply::accept_without_reply().after(&gate));

    let first = world.sandbox.begin(batch([message("m-1", "unclear")]));
    world.ses.received(1).await;
    let second = other.begin(batch([message("m-2", "unclear"), named("clear")]));
    world.database.sessions_blocked(1).await;
    gate.open();

    first.answer().await.assert_failed(&["m-1"]);
    second.answer().await.assert_failed(&["m-2"]);
    assert_ending(&ending(&other, "m-2").await, IN_DOUBT);
    world.database.assert_claims(&[("clear", "sent")]).await;
    world.ses.assert_requests(2);
}

#[tokio::test]
async fn lease_mode_waits_for_a_transaction_that_is_about_to_end_and_follows_it() {
    for (reply, sent_by_the_second) in [
        (Reply::accept(), false),
        (
            Reply::refuse(400, "SendingPausedException", "Email sending is disabled."),
            true,
        ),
    ] {
        let world = World::start_in(Mode::Transaction).await;
        let other = world.sandbox_in(Mode::Lease).await;
        let gate = Gate::closed();
        world.ses.reply_next(reply.after(&gate));

        let first = world.sandbox.begin(batch([message("m-1", "contended")]));
        world.ses.received(1).await;
        let second = other.begin(batch([message("m-2", "contended")]));
        world.database.sessions_blocked(1).await;
        gate.open();

        let _ = first.answer().await;
        second.answer().await.assert_none_failed();
        let (outcome, ..) = ending(&other, "m-2").await;
        assert_eq!(outcome == "sent", sent_by_the_second, "{outcome}");
        world.ses.assert_emails(1);
    }
}

/// SQS hands the same events to workers of both kinds, in copies and again and again.
#[tokio::test]
async fn a_change_of_mode_in_mid_stream_makes_one_email_of_each_event() {
    const EVENTS: usize = 60;
    let world = World::start_in(Mode::Transaction).await;
    let workers = [
        world.sandbox_in(Mode::Transaction).await,
        world.sandbox_in(Mode::Lease).await,
        world.sandbox_in(Mode::Transaction).await,
        world.sandbox_in(Mode::Lease).await,
    ];
    let delay = Duration::from_millis(10);
    world.ses.reply_always(Reply::accept().delayed(delay));

    for round in 0..4 {
        let mut running = Vec::new();
        for (place, worker) in workers.iter().enumerate() {
            // Each gets half of the events, overlapping with its neighbours', and in another round another half.
            let first = (place + round) * EVENTS / workers.len();
            let records = (first..first + EVENTS / 2).map(|number| {
                let number = number % EVENTS;
                message(&format!("m-{place}-{number}"), &format!("event-{number}"))
            });
            running.push(worker.begin(batch(records)));
        }
        for running in running {
            running.answer().await;
        }
    }
    // What was reported while another had it comes back.
    let all = (0..EVENTS).map(|number| named(&format!("event-{number}")));
    workers[1].invoke(batch(all)).await.assert_none_failed();

    let mut events: Vec<String> = world
        .ses
        .emails()
        .iter()
        .map(|email| email.event_id())
        .collect();
    events.sort_unstable();
    let sent = events.len();
    events.dedup();
    assert_eq!((events.len(), sent), (EVENTS, EVENTS));
    let claims = world.database.claims().await;
    assert!(claims.iter().all(|claim| claim.outcome == "sent"));
}
