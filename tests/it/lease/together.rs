//! What is done for all events of a batch at once must not let one of them decide over the others.

use std::time::Duration;

use crate::support::event::{Record, batch, order_placed};
use crate::support::gate::Gate;
use crate::support::lambda::AMPLE_FOR_MANY;
use crate::support::mode::Mode;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{message, named, start_with};

const BOTH: [Mode; 2] = [Mode::Transaction, Mode::Lease];

fn order(id: i64) -> Record {
    Record::new(&format!("o-{id}"), &order_placed(id))
}

/// From now on a query for an application does this first.
async fn queries_for_applications(world: &World, body: &str) {
    let odd = format!(
        "CREATE TABLE audit (seen bigint);
         ALTER TABLE jobs_application RENAME TO jobs_application_table;
         CREATE FUNCTION odd(id bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
         BEGIN {body}; RETURN true; END $$;
         CREATE VIEW jobs_application AS SELECT * FROM jobs_application_table WHERE odd(id)"
    );
    world.database.execute(&odd).await;
}

/// Two orders, and between them an application whose query does this.
async fn assert_only_the_odd_one_fails(mode: Mode, body: &str) -> World {
    let world = World::start_in(mode).await;
    queries_for_applications(&world, body).await;
    let answer = world
        .sandbox
        .invoke(batch([order(1001), named("odd"), order(1002)]))
        .await;
    answer.assert_failed(&["odd"]);
    world.ses.assert_requests(2);
    world
}

#[tokio::test]
async fn a_query_that_deadlocks_each_time_touches_no_neighbour() {
    for mode in BOTH {
        assert_only_the_odd_one_fails(mode, "RAISE EXCEPTION 'x' USING ERRCODE = '40P01'").await;
    }
}

#[tokio::test]
async fn a_query_that_ends_its_session_touches_no_neighbour() {
    let body = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5)";
    for mode in BOTH {
        assert_only_the_odd_one_fails(mode, body).await;
    }
}

#[tokio::test]
async fn a_query_that_writes_is_a_broken_folder_and_touches_no_neighbour() {
    let world = assert_only_the_odd_one_fails(Mode::Lease, "INSERT INTO audit VALUES (id)").await;

    let line = world.sandbox.logs.outcome_of_message("odd").await;
    assert_eq!(line.field("reason"), "broken_folder");
    assert!(line.text.contains("recipient.sql writes"), "{}", line.text);
}

#[tokio::test]
async fn ten_queries_that_take_long_together_are_asked_one_by_one() {
    let world = World::start_in(Mode::Lease).await;
    queries_for_applications(&world, "PERFORM pg_sleep(0.9)").await;
    let names: Vec<String> = (1..=10).map(|number| format!("e-{number}")).collect();

    let records = names.iter().map(|name| named(name));
    let answer = world.sandbox.invoke(batch(records)).await;

    answer.assert_none_failed();
    world.ses.assert_emails(10);
}

async fn a_group_with_one_row_that_fails() -> World {
    let world = start_with(|environment| environment.with("IN_DOUBT", "hold")).await;
    let trigger = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                   BEGIN
                       IF NEW.event_id = 'bad' AND NEW.outcome = 'sent' THEN
                           RAISE EXCEPTION 'no' USING ERRCODE = '23514';
                       END IF;
                       RETURN NEW;
                   END $$;
                   CREATE TRIGGER refuse BEFORE UPDATE ON processed_events
                       FOR EACH ROW EXECUTE FUNCTION refuse()";
    world.database.execute(trigger).await;
    let paused = Reply::refuse(400, "SendingPausedException", "Email sending is disabled.");
    world.ses.reply_to_event("paused", paused);
    world
        .sandbox
        .invoke_within(
            batch(["bad", "good", "paused"].map(named)),
            Duration::from_secs(10),
        )
        .await
        .assert_failed(&["paused"]);
    world
}

#[tokio::test]
async fn what_was_certainly_not_sent_is_released_though_another_row_cannot_be_written() {
    let world = a_group_with_one_row_that_fails().await;
    assert!(world.database.claim("paused").await.is_none());
}

#[tokio::test]
async fn what_was_sent_is_settled_though_another_row_cannot_be_written() {
    let world = a_group_with_one_row_that_fails().await;
    assert_eq!(
        world.database.claim("good").await.expect("a row").outcome,
        "sent"
    );
}

/// Somebody has one row locked, an operator in an open session, say.
#[tokio::test]
async fn what_was_certainly_not_sent_is_released_though_another_row_is_locked() {
    let world = start_with(|environment| environment.with("IN_DOUBT", "hold")).await;
    let gate = Gate::closed();
    world
        .ses
        .reply_to_event("bad", Reply::accept().after(&gate));
    let paused = Reply::refuse(400, "SendingPausedException", "Email sending is disabled.");
    world.ses.reply_to_event("paused", paused.after(&gate));
    let running = world
        .sandbox
        .begin_within(batch(["bad", "paused"].map(named)), Duration::from_secs(8));
    world.ses.received(2).await;
    let neighbour = world.database.neighbour().await;
    neighbour
        .batch_execute("BEGIN; SELECT FROM processed_events WHERE event_id = 'bad' FOR UPDATE")
        .await
        .unwrap();
    gate.open();
    running.answer().await.assert_failed(&["paused"]);
    neighbour.batch_execute("ROLLBACK").await.unwrap();
    let rows = "SELECT count(*) FROM processed_events WHERE event_id = 'bad' AND outcome = 'sent'";
    world
        .database
        .until("the abandoned statement", rows, 1)
        .await;
    assert!(world.database.claim("paused").await.is_none());
}

#[tokio::test]
async fn a_batch_of_a_thousand_is_sent() {
    let world = World::start_in(Mode::Lease).await;
    let names: Vec<String> = (1..=1000).map(|number| format!("e-{number}")).collect();

    let records = names.iter().map(|name| named(name));
    world
        .sandbox
        .invoke_within(batch(records), AMPLE_FOR_MANY)
        .await
        .assert_none_failed();

    world.ses.assert_emails(1000);
}

/// No more of them: SES must answer the first within 10 s, and a slow machine takes its time until the last is there.
#[tokio::test]
async fn where_a_thousand_may_be_in_flight_a_hundred_are_and_all_are_sent() {
    let world = start_with(|environment| environment.with("MAX_IN_FLIGHT", "1000")).await;
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));
    let names: Vec<String> = (1..=100).map(|number| format!("e-{number}")).collect();

    let records = names.iter().map(|name| named(name));
    let running = world.sandbox.begin(batch(records));
    world.ses.received(100).await;
    gate.open();

    running.answer().await.assert_none_failed();
    world.ses.assert_emails(100);
}

#[tokio::test]
async fn ten_messages_of_one_handled_event_cost_one_claim() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    world
        .sandbox
        .invoke(batch([named("one")]))
        .await
        .assert_none_failed();
    let count = || {
        let messages = proxy.messages();
        let statements = messages.iter().filter(|message| message.sql().is_some());
        statements
            .filter(|message| message.contains("INSERT INTO processed_events"))
            .count()
    };
    let before = count();
    let ten = (0..10).map(|number| message(&format!("m-{number}"), "one"));
    world.sandbox.invoke(batch(ten)).await.assert_none_failed();
    assert_eq!(count() - before, 1);
}
