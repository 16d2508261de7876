//! One statement claims a batch and one transaction looks it up: what is wrong with one event must not touch the others.

use crate::support::event::{Record, batch, interview, order_placed, status_changed};
use crate::support::mode::Mode;
use crate::support::world::World;

use super::{IN_PROGRESS, assert_ending, ending, named, start};

/// The event among others, before and behind it.
fn among_others(event: Record) -> [Record; 3] {
    [named("a"), event, named("z")]
}

/// A job board on which every look-up of an order meets this condition.
async fn world_whose_orders_are(condition: &str) -> World {
    let world = start().await;
    let doubtful = format!(
        "ALTER TABLE billing_order RENAME TO raw_order; \
         CREATE VIEW billing_order AS SELECT * FROM raw_order WHERE {condition}"
    );
    world.database.execute(&doubtful).await;
    world
}

#[tokio::test]
async fn an_event_whose_query_fails_is_alone_in_it() {
    let world = world_whose_orders_are("item::integer > 0").await;
    let order = Record::new("order", &order_placed(1001));

    world
        .sandbox
        .invoke(batch(among_others(order)))
        .await
        .assert_failed(&["order"]);

    let refused = ("refused", "ERROR", Some("impossible_data"));
    assert_ending(&ending(&world.sandbox, "order").await, refused);
    world
        .database
        .assert_claims(&[("a", "sent"), ("z", "sent")])
        .await;
}

#[tokio::test]
async fn an_event_whose_query_needs_our_setup_is_alone_in_it() {
    let world = start().await;
    world
        .database
        .execute("ALTER TABLE billing_order RENAME TO elsewhere")
        .await;
    let order = Record::new("order", &order_placed(1001));

    world
        .sandbox
        .invoke(batch(among_others(order)))
        .await
        .assert_failed(&["order"]);

    let ours = ("released", "ERROR", Some("database_setup"));
    assert_ending(&ending(&world.sandbox, "order").await, ours);
    world
        .database
        .assert_claims(&[("a", "sent"), ("z", "sent")])
        .await;
}

#[tokio::test]
async fn an_event_whose_key_postgres_does_not_take_is_alone_in_it() {
    let world = start().await;
    let picky = "CREATE FUNCTION pick() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '22003'; END $$;
                 CREATE TRIGGER pick BEFORE INSERT ON processed_events
                     FOR EACH ROW WHEN (NEW.event_id = 'm') EXECUTE FUNCTION pick()";
    world.database.execute(picky).await;

    world
        .sandbox
        .invoke(batch(among_others(named("m"))))
        .await
        .assert_failed(&["m"]);

    world
        .database
        .assert_claims(&[("a", "sent"), ("z", "sent")])
        .await;
    world.ses.assert_requests(2);
}

/// A neighbour in transaction mode, that is, which has not committed it yet.
#[tokio::test]
async fn a_key_that_a_neighbours_transaction_holds_is_in_progress_and_the_others_are_sent() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    let neighbour = world.database.neighbour().await;
    let hold = "BEGIN; INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256) \
                VALUES ('m', 'application.status_changed', 'sent', 'worker', '')";
    neighbour.batch_execute(hold).await.expect("it is free");

    world
        .sandbox
        .invoke(batch(among_others(named("m"))))
        .await
        .assert_failed(&["m"]);

    assert_ending(&ending(&world.sandbox, "m").await, IN_PROGRESS);
    world
        .database
        .assert_claims(&[("a", "sent"), ("z", "sent")])
        .await;
    let connections = proxy
        .messages()
        .iter()
        .map(|message| message.connection)
        .max();
    assert_eq!(connections, Some(1), "another connection is no cure");
    neighbour.batch_execute("ROLLBACK").await.expect("it can");
}

#[tokio::test]
async fn the_same_key_twice_in_a_batch_is_one_email_and_one_duplicate() {
    let world = start().await;
    let event = interview("twice");

    world
        .sandbox
        .invoke(batch([
            Record::new("m-1", &event),
            named("beside"),
            Record::new("m-2", &event),
        ]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(2);
    let lines = world.sandbox.logs.outcomes_of("twice", 2).await;
    let outcomes: Vec<&str> = lines.iter().map(|line| line.outcome()).collect();
    assert_eq!(outcomes, ["sent", "duplicate"]);
}

#[tokio::test]
async fn two_payloads_under_one_key_in_a_batch_are_one_email_and_one_refusal() {
    let world = start().await;

    world
        .sandbox
        .invoke(batch([
            Record::new("m-1", &interview("reused")),
            Record::new("m-2", &status_changed("reused", 3, "interview", "offer")),
        ]))
        .await
        .assert_failed(&["m-2"]);

    world.ses.assert_requests(1);
    let refused = ("refused", "ERROR", Some("key_reused"));
    assert_ending(&ending(&world.sandbox, "m-2").await, refused);
}

/// The row is under a live lease, which says nothing of the other payload's right to wait for it.
#[tokio::test]
async fn another_payload_is_refused_also_while_the_first_is_underway() {
    let world = start().await;
    let other = world.another_sandbox().await;
    let gate = crate::support::gate::Gate::closed();
    world
        .ses
        .reply_next(crate::support::ses::Reply::accept().after(&gate));

    let running = world.sandbox.begin(batch([named("reused")]));
    world.ses.received(1).await;
    let offer = status_changed("reused", 3, "interview", "offer");
    other
        .invoke(batch([Record::new("m-2", &offer)]))
        .await
        .assert_failed(&["m-2"]);
    gate.open();

    running.answer().await.assert_none_failed();
    let refused = ("refused", "ERROR", Some("key_reused"));
    assert_ending(&ending(&other, "m-2").await, refused);
}
