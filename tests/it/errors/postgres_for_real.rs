//! The errors that a test can bring Postgres to make by itself.

use std::time::Duration;

use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::logs::Line;
use crate::support::mode::Mode;
use crate::support::proxy::Then;
use crate::support::world::World;

use super::Ending;

/// A job board on which the lookup of an application meets this condition, and what became of an event.
async fn assert_lookup_fails(condition: &str, code: &str) {
    let world = World::start().await;
    let doubtful = format!(
        "ALTER TABLE jobs_application RENAME TO raw_application; \
         CREATE VIEW jobs_application AS SELECT * FROM raw_application WHERE {condition}"
    );
    world.database.execute(&doubtful).await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("odd"))]))
        .await
        .assert_failed(&["m-1"]);

    let line = world.sandbox.logs.outcome_of("odd").await;
    assert_eq!(Ending::of(&line), Ending::never("impossible_data", code));
    world.ses.assert_requests(0);
    world.database.assert_claims(&[]).await;
}

#[tokio::test]
async fn a_number_out_of_range_is_refused_for_real() {
    assert_lookup_fails("id * 9223372036854775807 > 0", "22003").await;
}

#[tokio::test]
async fn a_text_that_is_no_number_is_refused_for_real() {
    assert_lookup_fails("status::integer > 0", "22P02").await;
}

#[tokio::test]
async fn a_text_that_is_not_in_the_databases_encoding_is_refused_for_real() {
    assert_lookup_fails("convert_from('\\xff', 'UTF8') <> status", "22021").await;
}

#[tokio::test]
async fn a_neighbour_that_holds_the_key_costs_one_try_for_real() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Transaction).await;
    let neighbour = world.database.neighbour().await;
    let hold = "BEGIN; INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256) \
                VALUES ('held', 'application.status_changed', 'sent', 'worker', '')";
    neighbour.batch_execute(hold).await.expect("it is free");

    let event = batch([Record::new("m-1", &interview("held"))]);
    world
        .sandbox
        .invoke_within(event, Duration::from_secs(8))
        .await
        .assert_failed(&["m-1"]);

    let line = world.sandbox.logs.outcome_of("held").await;
    assert_eq!(Ending::of(&line), Ending::try_again("database", "55P03"));
    let claims = proxy.messages();
    let claims = claims
        .iter()
        .filter(|message| message.contains("INSERT INTO processed_events"));
    assert_eq!(claims.count(), 1, "claims that were tried");
    world.ses.assert_requests(0);
}

/// In lease mode no key is held while a recipient is looked up. Here we hold the key and want the application; a neighbour holds the application and wants the key.
#[tokio::test]
async fn a_deadlock_costs_another_try_for_real() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Transaction).await;
    let impatient = "ALTER ROLE CURRENT_USER SET deadlock_timeout = '300ms'";
    world.database.execute(impatient).await;
    let sandbox = world.another_sandbox().await;
    let neighbour = world.database.neighbour().await;
    let patient =
        "SET deadlock_timeout = '60s'; BEGIN; LOCK TABLE jobs_application IN ACCESS EXCLUSIVE MODE";
    neighbour.batch_execute(patient).await.expect("it is free");

    let gate = Gate::closed();
    let look_up = proxy.at("jobs_application", Then::Hold(gate.clone()));
    let running = sandbox.begin(batch([Record::new("m-1", &interview("wanted"))]));
    look_up.happened().await;
    let claimed = "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user \
                     AND application_name = 'onemail' AND state = 'idle in transaction' \
                     AND query NOT LIKE 'BEGIN%'";
    world.database.until("the claim", claimed, 1).await;
    // The neighbour waits first, and patiently: it is we who find the deadlock. It comes back once we have been
    // ended, and with us our claim.
    let claim = "INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256) \
                 VALUES ('wanted', 'application.status_changed', 'sent', 'worker', '')";
    let waits = async {
        world.database.sessions_blocked(1).await;
        gate.open();
    };
    let (claimed, ()) = tokio::join!(neighbour.batch_execute(claim), waits);
    claimed.expect("we gave way");
    neighbour.batch_execute("ROLLBACK").await.expect("it can");

    running.answer().await.assert_none_failed();
    world.ses.assert_emails(1);
    let deadlock = |line: &Line| line.field("code") == "40P01";
    sandbox.logs.wait_for("the deadlock", deadlock).await;
}

#[tokio::test]
async fn a_session_that_postgres_ends_before_the_send_costs_another_try_for_real() {
    let world = World::start().await;
    let neighbour = world.database.neighbour().await;
    let lock = "BEGIN; LOCK TABLE jobs_application IN ACCESS EXCLUSIVE MODE";
    neighbour.batch_execute(lock).await.expect("it is free");

    let running = world
        .sandbox
        .begin(batch([Record::new("m-1", &interview("ended"))]));
    world.database.sessions_blocked(1).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE usename = current_user AND wait_event_type = 'Lock'";
    neighbour.batch_execute(end).await.expect("it may");
    neighbour.batch_execute("ROLLBACK").await.expect("it can");

    running.answer().await.assert_none_failed();
    world.ses.assert_emails(1);
    let ended = |line: &Line| line.field("code") == "57P01";
    world.sandbox.logs.wait_for("the end", ended).await;
}

/// A role that may have one connection, and somebody who has it.
#[tokio::test]
async fn too_many_connections_cost_another_try_for_real() {
    let world = World::start().await;
    let role = format!("{}_limited", world.database.name());
    let schema = world.database.name();
    let create = format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 0; \
         ALTER ROLE {role} SET search_path = {schema}; \
         GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}"
    );
    world.database.execute(&create).await;
    let url = world
        .database
        .url()
        .replace(&format!("{schema}@"), &format!("{role}@"));
    let environment = world.environment.clone().with("DATABASE_URL", &url);
    let sandbox = Sandbox::start(&environment).await;
    let event = batch([Record::new("m-1", &interview("crowded"))]);

    sandbox.invoke(event.clone()).await.assert_failed(&["m-1"]);
    let line = sandbox.logs.outcome_of("crowded").await;
    assert_eq!(Ending::of(&line), Ending::try_again("database", "53300"));
    world.ses.assert_requests(0);

    let raise = format!("ALTER ROLE {role} CONNECTION LIMIT 1");
    world.database.execute(&raise).await;
    sandbox.invoke(event).await.assert_none_failed();
    world.ses.assert_emails(1);
}

/// No double holds it, and so no template could use it; another connection would not help.
#[tokio::test]
async fn a_row_that_cannot_be_read_needs_you() {
    let world = World::start().await;
    world
        .database
        .execute(
            "ALTER TABLE jobs_candidate DROP CONSTRAINT jobs_candidate_user_id_fkey;
             ALTER TABLE auth_user ALTER COLUMN id DROP IDENTITY;
             ALTER TABLE auth_user ALTER COLUMN id TYPE numeric;
             ALTER TABLE jobs_candidate ALTER COLUMN user_id TYPE numeric;
             UPDATE auth_user SET id = 1e400 WHERE id = 5;
             UPDATE jobs_candidate SET user_id = 1e400 WHERE user_id = 5",
        )
        .await;

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("huge"))]))
        .await
        .assert_failed(&["m-1"]);

    let line = world.sandbox.logs.outcome_of("huge").await;
    assert_eq!(
        Ending::of(&line),
        Ending::ours("database_setup", "unreadable_row")
    );
    world.ses.assert_requests(0);
}
