//! The steps of one batch, as Postgres sees them.

use crate::support::event::{Record, batch, order_placed};
use crate::support::gate::Gate;
use crate::support::mode::Mode;
use crate::support::proxy::{Message, Proxy, Then};
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{named, start};

fn ten() -> Vec<Record> {
    (1..=10)
        .map(|number| named(&format!("event-{number}")))
        .collect()
}

async fn start_with_proxy() -> (World, Proxy) {
    World::start_with_proxy_in(Mode::Lease).await
}

fn count(messages: &[Message], text: &str) -> usize {
    let statements = messages.iter().filter(|message| message.sql().is_some());
    statements.filter(|message| message.contains(text)).count()
}

#[tokio::test]
async fn while_ses_is_silent_all_keys_are_claimed_and_committed_until_shortly_after_the_deadline() {
    let world = start().await;
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));
    let clock = "SELECT extract(epoch FROM clock_timestamp())::float8";
    let before: f64 = world.database.query(clock, &[]).await[0].get(0);

    let running = world.sandbox.begin(batch(ten()));
    world.ses.received(10).await;

    let after: f64 = world.database.query(clock, &[]).await[0].get(0);
    let rows = "SELECT outcome, settled_by, count(DISTINCT attempt), \
                       min(extract(epoch FROM lease_until))::float8, max(extract(epoch FROM lease_until))::float8 \
                FROM processed_events GROUP BY outcome, settled_by";
    let rows = world.database.query(rows, &[]).await;
    assert_eq!(rows.len(), 1, "all rows say the same");
    assert_eq!(rows[0].get::<_, &str>(0), "sending");
    assert_eq!(rows[0].get::<_, &str>(1), "worker");
    assert_eq!(rows[0].get::<_, i64>(2), 1, "one attempt has all");
    // An invocation has thirty seconds here, and began between the two looks at the clock.
    let (earliest, latest): (f64, f64) = (rows[0].get(3), rows[0].get(4));
    assert!(earliest >= before + 30.0 + 4.0, "{}", earliest - before);
    assert!(latest <= after + 30.0 + 6.0, "{}", latest - after);
    assert_eq!(world.database.claims().await.len(), 10);

    gate.open();
    running.answer().await.assert_none_failed();
}

#[tokio::test]
async fn while_ses_answers_no_transaction_is_open() {
    let world = start().await;
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));

    let running = world.sandbox.begin(batch(ten()));
    world.ses.received(10).await;

    let sessions = "SELECT state, xact_start IS NULL, backend_xmin IS NULL FROM pg_stat_activity \
                    WHERE usename = current_user AND pid <> pg_backend_pid() \
                      AND application_name = 'onemail'";
    let sessions = world.database.query(sessions, &[]).await;
    assert_eq!(sessions.len(), 1, "sessions of the worker");
    assert_eq!(sessions[0].get::<_, &str>(0), "idle");
    assert!(sessions[0].get::<_, bool>(1) && sessions[0].get::<_, bool>(2));

    gate.open();
    running.answer().await.assert_none_failed();
}

#[tokio::test]
async fn a_batch_of_ten_is_one_claim_one_round_of_queries_and_one_settlement_on_one_connection() {
    let (world, proxy) = start_with_proxy().await;
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));

    // The emails end together, as they mostly do.
    let running = world.sandbox.begin(batch(ten()));
    world.ses.received(10).await;
    world.ses.reply_at_once(&gate, &world.sandbox).await;
    running.answer().await.assert_none_failed();

    let messages = proxy.messages();
    assert_eq!(count(&messages, "INSERT INTO processed_events"), 1);
    assert_eq!(count(&messages, "settled.outcome"), 1);
    assert_eq!(count(&messages, "DELETE FROM processed_events"), 0);
    let connections = messages.iter().map(|message| message.connection).max();
    assert_eq!(connections, Some(1));
    assert_eq!(world.database.claims().await.len(), 10);
}

#[tokio::test]
async fn recipients_of_all_kinds_are_asked_for_in_one_round_trip() {
    let (world, proxy) = start_with_proxy().await;
    let gate = Gate::closed();
    // The look-up begins a transaction, and nothing else does.
    let held = proxy.at("BEGIN", Then::HoldReplies(gate.clone()));
    let orders = [1001, 1002, 1003].map(|id| Record::new(&format!("o-{id}"), &order_placed(id)));

    let running = world.sandbox.begin(batch(ten().into_iter().chain(orders)));
    held.happened().await;
    // All are on their way, though nothing has been answered.
    proxy.seen(10, "jobs_application AS application").await;
    proxy.seen(3, "billing_order AS o").await;
    proxy.seen(1, "ROLLBACK").await;
    gate.open();

    running.answer().await.assert_none_failed();
    world.ses.assert_emails(13);
}

#[tokio::test]
async fn max_in_flight_is_for_emails_and_one_connection_does_for_all() {
    let (world, proxy) = start_with_proxy().await;
    let records = (1..=40).map(|number| named(&format!("event-{number}")));

    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    let messages = proxy.messages();
    let connections = messages.iter().map(|message| message.connection).max();
    assert_eq!(connections, Some(1));
    assert_eq!(count(&messages, "INSERT INTO processed_events"), 1);
    world.ses.assert_emails(40);
    assert!(world.ses.most_in_flight() <= 10);
}

/// What one slow email must not keep back: a crash would put the others in doubt.
#[tokio::test]
async fn what_is_sent_is_settled_while_others_are_still_underway() {
    let world = start().await;
    let gate = Gate::closed();
    world
        .ses
        .reply_to_event("slow", Reply::accept().after(&gate));

    let running = world
        .sandbox
        .begin(batch(["quick", "slow", "swift"].map(named)));
    let settled = "SELECT count(*) FROM processed_events WHERE outcome = 'sent'";
    world.database.until("the quick ones", settled, 2).await;
    world
        .database
        .assert_claims(&[("quick", "sent"), ("slow", "sending"), ("swift", "sent")])
        .await;

    gate.open();
    running.answer().await.assert_none_failed();
    world
        .database
        .assert_claims(&[("quick", "sent"), ("slow", "sent"), ("swift", "sent")])
        .await;
}
