//! Between two invocations Lambda stops the sandbox, and its connections may die unseen. That costs a reconnect, not
//! a failed record and not a second email.

use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::proxy::End;
use crate::support::ses::Reply;
use crate::support::world::World;

/// A batch whose records run at once, so that there are as many connections to Postgres and to SES.
async fn send_several_at_once(world: &World, name: &str) {
    const COUNT: usize = 4;
    let gate = Gate::closed();
    let before = world.ses.requests().len();
    world.ses.reply_always(Reply::accept().after(&gate));

    let event_ids = (1..=COUNT).map(|number| format!("{name}-{number}"));
    let records =
        event_ids.map(|event_id| Record::new(&format!("m-{event_id}"), &interview(&event_id)));
    let running = world.sandbox.begin(batch(records));
    world.ses.received(before + COUNT).await;
    gate.open();

    running.answer().await.assert_none_failed();
    world.ses.assert_requests(before + COUNT);
    assert_eq!(world.database.claims().await.len(), before + COUNT);
}

async fn connections_to_postgres_that_end(end: End) {
    let (world, proxy) = World::start_with_proxy().await;
    send_several_at_once(&world, "before").await;
    world.sandbox.asked_for_work(2).await;

    world.sandbox.freeze();
    proxy.end_connections(end).await;
    world.sandbox.thaw();

    send_several_at_once(&world, "after").await;
}

#[tokio::test]
async fn connections_that_postgres_closed_meanwhile_cost_a_reconnect() {
    connections_to_postgres_that_end(End::Close).await;
}

#[tokio::test]
async fn connections_that_postgres_reset_meanwhile_cost_a_reconnect() {
    connections_to_postgres_that_end(End::Reset).await;
}

#[tokio::test]
async fn connections_to_postgres_that_the_network_forgot_meanwhile_cost_a_reconnect() {
    connections_to_postgres_that_end(End::Silence).await;
}

#[tokio::test]
async fn sessions_that_postgres_ended_meanwhile_cost_a_reconnect() {
    let world = World::start().await;
    send_several_at_once(&world, "before").await;
    world.sandbox.asked_for_work(2).await;

    world.sandbox.freeze();
    world.database.end_other_sessions().await;
    world.sandbox.thaw();

    send_several_at_once(&world, "after").await;
}

#[tokio::test]
async fn connections_that_ses_closed_meanwhile_cost_a_reconnect() {
    let world = World::start().await;
    send_several_at_once(&world, "before").await;
    world.sandbox.asked_for_work(2).await;

    world.sandbox.freeze();
    world.ses.close_idle_connections().await;
    world.sandbox.thaw();

    send_several_at_once(&world, "after").await;
}

#[tokio::test]
async fn connections_to_ses_that_the_network_forgot_meanwhile_cost_a_reconnect() {
    let world = World::start().await;
    send_several_at_once(&world, "before").await;
    world.sandbox.asked_for_work(2).await;

    world.sandbox.freeze();
    world.ses.go_deaf_on_idle_connections().await;
    world.sandbox.thaw();

    send_several_at_once(&world, "after").await;
}

#[tokio::test]
async fn a_connection_that_ses_closes_after_each_reply_costs_a_reconnect() {
    let world = World::start().await;
    world.ses.reply_always(Reply::accept().then_close());

    for number in 1..=5 {
        let event = interview(&format!("event-{number}"));
        world
            .sandbox
            .invoke(batch([Record::new("m-1", &event)]))
            .await
            .assert_none_failed();
    }

    world.ses.assert_requests(5);
    world.ses.assert_emails(5);
}
