//! A key that another worker has.

use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::ses::Reply;

use super::{IN_PROGRESS, assert_ending, delay_of, ending, lease_left, message, named, start};

#[tokio::test]
async fn a_live_lease_of_another_worker_is_waited_out_by_sqs_and_not_by_us() {
    let world = start().await;
    let other = world.another_sandbox().await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&gate));

    let first = world.sandbox.begin(batch([message("m-1", "contended")]));
    world.ses.received(1).await;
    other
        .invoke(batch([message("m-2", "contended"), named("free")]))
        .await
        .assert_failed(&["m-2"]);

    assert_ending(&ending(&other, "m-2").await, IN_PROGRESS);
    let left = lease_left(&world, "contended").await;
    let delay = delay_of(&world, "m-2");
    assert!(
        delay >= left && delay <= 37.0,
        "{delay} s, with {left} s left"
    );
    world
        .database
        .assert_claims(&[("contended", "sending"), ("free", "sent")])
        .await;

    gate.open();
    first.answer().await.assert_none_failed();
    other
        .invoke(batch([message("m-2", "contended")]))
        .await
        .assert_none_failed();
    world.ses.assert_emails(2);
}

#[tokio::test]
async fn when_the_first_of_two_workers_fails_the_second_message_sends_when_it_comes_back() {
    let world = start().await;
    let other = world.another_sandbox().await;
    let gate = Gate::closed();
    world
        .ses
        .reply_next(Reply::refuse(404, "NotFoundException", "No such set.").after(&gate));

    let first = world.sandbox.begin(batch([message("m-1", "contended")]));
    world.ses.received(1).await;
    other
        .invoke(batch([message("m-2", "contended")]))
        .await
        .assert_failed(&["m-2"]);
    gate.open();
    first.answer().await.assert_failed(&["m-1"]);
    world.database.assert_claims(&[]).await;
    other
        .invoke(batch([message("m-2", "contended")]))
        .await
        .assert_none_failed();

    world.ses.assert_emails(1);
    world.database.assert_claims(&[("contended", "sent")]).await;
}

/// Keys are taken in one order, whatever the order of the records.
#[tokio::test]
async fn two_batches_with_the_same_keys_in_opposite_order_never_deadlock() {
    const ROUNDS: usize = 20;
    let world = start().await;
    let other = world.another_sandbox().await;
    // Each key takes a while, so that the two meet halfway; a deadlock is found before anybody gives up; and no plan
    // happens to sort the keys by itself.
    let slow = "CREATE FUNCTION dwell() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END $$;
                CREATE TRIGGER dwell BEFORE INSERT ON processed_events
                    FOR EACH ROW EXECUTE FUNCTION dwell();
                ALTER ROLE CURRENT_USER SET deadlock_timeout = '50ms';
                ALTER ROLE CURRENT_USER SET enable_mergejoin = off;
                ALTER ROLE CURRENT_USER SET enable_hashjoin = off";
    world.database.execute(slow).await;

    for round in 0..ROUNDS {
        let names: Vec<String> = (0..10).map(|key| format!("r{round}-{key}")).collect();
        let forwards = names.iter().map(|name| message(&format!("f-{name}"), name));
        let backwards = names.iter().rev();
        let backwards = backwards.map(|name| message(&format!("b-{name}"), name));
        let (one, two) = (
            world.sandbox.begin(batch(forwards)),
            other.begin(batch(backwards)),
        );
        let (one, two) = (one.answer().await, two.answer().await);
        // What one has the other finds settled, or under its lease.
        assert!(one.failed.len() + two.failed.len() <= 10);
    }

    world.ses.assert_requests(10 * ROUNDS);
    let claims = world.database.claims().await;
    assert_eq!(claims.len(), 10 * ROUNDS);
    assert!(claims.iter().all(|claim| claim.outcome == "sent"));
    for sandbox in [&world.sandbox, &other] {
        let log = sandbox.logs.text();
        assert!(!log.contains("40P01"), "{log}");
    }
}
