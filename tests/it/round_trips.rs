//! What passes between the function and Postgres: how often they wait for each other, and what a pooler between them
//! must put up with.

use crate::support::event::{Record, batch, interview, status_changed};
use crate::support::gate::Gate;
use crate::support::mode::Mode;
use crate::support::proxy::{Message, Proxy, Then};
use crate::support::ses::Reply;
use crate::support::world::World;

/// A world whose connection to Postgres is open already, so that what follows is the record's own traffic.
async fn warm_world() -> (World, Proxy) {
    warm_world_in(Mode::of_this_run()).await
}

async fn warm_world_in(mode: Mode) -> (World, Proxy) {
    let (world, proxy) = World::start_with_proxy_in(mode).await;
    world
        .sandbox
        .invoke(batch([Record::new("m-0", &interview("warm-up"))]))
        .await
        .assert_none_failed();
    (world, proxy)
}

fn statements(messages: &[Message]) -> Vec<&str> {
    messages.iter().filter_map(Message::sql).collect()
}

/// Where in the list the first statement is that contains the text.
#[track_caller]
fn position(statements: &[&str], text: &str) -> usize {
    let found = statements
        .iter()
        .position(|statement| statement.to_lowercase().contains(&text.to_lowercase()));
    found.unwrap_or_else(|| panic!("no {text:?} in {statements:#?}"))
}

#[tokio::test]
async fn a_claim_and_its_recipient_cost_one_round_trip() {
    let (world, proxy) = warm_world_in(Mode::Transaction).await;
    let before = proxy.messages().len();
    let gate = Gate::closed();
    let _held = proxy.at("BEGIN", Then::HoldReplies(gate.clone()));

    let running = world
        .sandbox
        .begin(batch([Record::new("m-1", &interview("claimed"))]));
    // The claim and the query for the recipient are on their way although nothing has been answered.
    proxy.seen(2, "INSERT INTO processed_events").await;
    proxy.seen(2, "jobs_application").await;
    gate.open();

    running.answer().await.assert_none_failed();
    let messages = proxy.messages();
    let statements = statements(&messages[before..]);
    assert_eq!(
        position(&statements, "BEGIN"),
        0,
        "something was asked before: {statements:#?}"
    );
}

#[tokio::test]
async fn the_message_id_and_the_commit_cost_one_round_trip() {
    let (world, proxy) = warm_world_in(Mode::Transaction).await;
    let gate = Gate::closed();
    let ses_gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&ses_gate));

    let running = world
        .sandbox
        .begin(batch([Record::new("m-1", &interview("settled"))]));
    let message_id = world.ses.received(2).await[1].message_id.clone();
    let _held = proxy.at(&message_id, Then::HoldReplies(gate.clone()));
    ses_gate.open();
    proxy.seen(2, "COMMIT").await;
    gate.open();

    running.answer().await.assert_none_failed();
    let claim = world.database.claim("settled").await.expect("a claim");
    assert_eq!(claim.ses_message_id, Some(message_id));
}

#[tokio::test]
async fn the_limits_of_the_transaction_are_set_before_the_claim_and_only_for_it() {
    let (world, proxy) = warm_world_in(Mode::Transaction).await;
    drop(world);

    let messages = proxy.messages();
    let statements = statements(&messages);
    let claim = position(&statements, "INSERT INTO processed_events");
    for limit in [
        "SET LOCAL lock_timeout",
        "SET LOCAL statement_timeout",
        "SET LOCAL idle_in_transaction_session_timeout",
    ] {
        assert!(
            position(&statements, limit) < claim,
            "{limit} comes after the claim"
        );
    }
}

/// What RDS Proxy pins a connection for, and what PgBouncer in transaction mode gets wrong.
#[tokio::test]
async fn nothing_is_left_in_the_session() {
    let (world, proxy) = warm_world().await;
    world
        .ses
        .reply_to_event("refused", Reply::refuse(400, "MessageRejected", "No."));
    let records = [
        Record::new("m-1", &interview("warm-up")),
        Record::new("m-2", &interview("refused")),
        Record::new("m-3", &status_changed("gone", 9999, "reviewing", "offer")),
        Record::new("m-4", &status_changed("warm-up", 3, "interview", "offer")),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-2", "m-4"]);

    let messages = proxy.messages();
    let named: Vec<&str> = messages
        .iter()
        .filter_map(Message::statement_name)
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(named, Vec::<&str>::new(), "named statements");
    for message in &messages {
        assert!(
            !message.contains("\0options\0"),
            "RDS Proxy refuses `options` at startup"
        );
    }
    for statement in statements(&messages)
        .into_iter()
        .flat_map(|sql| sql.split(';'))
    {
        let statement = statement.trim().to_lowercase();
        let leaves_something = [
            "prepare",
            "listen",
            "declare",
            "discard",
            "deallocate",
            "create temp",
            "lock ",
        ]
        .iter()
        .any(|word| statement.starts_with(word))
            || (statement.starts_with("set ") && !statement.starts_with("set local "))
            || statement.contains("pg_advisory_lock")
            || statement.contains("pg_try_advisory_lock");
        assert!(!leaves_something, "{statement}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again_and_left_outside_of_any_transaction() {
    let (world, proxy) = warm_world().await;
    world
        .ses
        .reply_to_event("refused", Reply::refuse(400, "MessageRejected", "No."));
    for (message_id, event) in [
        ("m-1", interview("warm-up")),
        ("m-2", interview("refused")),
        ("m-3", status_changed("gone", 9999, "reviewing", "offer")),
        ("m-4", interview("last")),
    ] {
        world
            .sandbox
            .invoke(batch([Record::new(message_id, &event)]))
            .await;
        world.database.transactions_over().await;
    }

    let connections = proxy
        .messages()
        .iter()
        .map(|message| message.connection)
        .max();
    assert_eq!(connections, Some(1), "connections opened");
}

#[tokio::test]
async fn a_batch_opens_no_more_connections_than_it_has_records_in_flight() {
    let (world, proxy) = World::start_with_proxy().await;

    let records = (1..=40).map(|number| {
        Record::new(
            &format!("m-{number}"),
            &interview(&format!("event-{number}")),
        )
    });
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    let connections = proxy
        .messages()
        .iter()
        .map(|message| message.connection)
        .max()
        .expect("there are some");
    assert!(
        connections <= 10,
        "{connections} connections for 10 records in flight"
    );
}

/// A ledger whose transactions are stricter by default must not turn a duplicate into an error.
#[tokio::test]
async fn a_stricter_default_isolation_changes_nothing() {
    let world = World::start_in(Mode::Transaction).await;
    let strict = "ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable'";
    world.database.execute(strict).await;
    let workers = [world.another_sandbox().await, world.another_sandbox().await];
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));
    let event = interview("strict");

    let first = workers[0].begin(batch([Record::new("m-1", &event)]));
    world.ses.received(1).await;
    let second = workers[1].begin(batch([Record::new("m-2", &event)]));
    world.database.sessions_blocked(1).await;
    gate.open();

    first.answer().await.assert_none_failed();
    second.answer().await.assert_none_failed();
    world.ses.assert_requests(1);
}

/// Such limits are for sessions that hang, which a claim isn't while SES answers: cut off, its key would be free.
#[tokio::test]
async fn limits_that_the_role_has_for_its_transactions_do_not_end_a_claim() {
    let world = World::start_in(Mode::Transaction).await;
    // Postgres has the second one since 17.
    let limited = "ALTER ROLE CURRENT_USER SET idle_in_transaction_session_timeout = '300ms';
                   DO $$ BEGIN
                       ALTER ROLE CURRENT_USER SET transaction_timeout = '300ms';
                   EXCEPTION WHEN undefined_object THEN NULL; END $$";
    world.database.execute(limited).await;
    let other = world.another_sandbox().await;
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));
    let event = interview("limited");

    let first = world.sandbox.begin(batch([Record::new("m-1", &event)]));
    world.ses.received(1).await;
    world.database.query("SELECT pg_sleep(0.5)", &[]).await;
    let second = other.begin(batch([Record::new("m-2", &event)]));
    world.database.sessions_blocked(1).await;
    gate.open();

    first.answer().await.assert_none_failed();
    second.answer().await.assert_none_failed();
    world.ses.assert_requests(1);
}
