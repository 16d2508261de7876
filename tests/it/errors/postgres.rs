//! What Postgres answers to a claim, row by row of the table in `src/database/verdict.rs`.

use serde_json::json;

use crate::support::event::{Record, batch, interview};
use crate::support::mode::Mode;
use crate::support::world::World;

use super::{Ending, counts};

/// Whatever Postgres answers to the claim of the event `code-XXXXX` is an error with that code.
const FAIL_BY_NAME: &str = "
    CREATE FUNCTION fail_by_name() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM nextval('tries_' || lower(substr(NEW.event_id, 6)));
        RAISE EXCEPTION 'row of sam@example.com' USING ERRCODE = substr(NEW.event_id, 6);
    END $$;
    CREATE TRIGGER fail_by_name BEFORE INSERT ON processed_events
        FOR EACH ROW WHEN (NEW.event_id LIKE 'code-%') EXECUTE FUNCTION fail_by_name();
";

/// The same, but the claim succeeds at the third try.
const FAIL_TWICE_BY_NAME: &str = "
    CREATE FUNCTION fail_by_name() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('tries_' || lower(substr(NEW.event_id, 6))) < 3 THEN
            RAISE EXCEPTION 'not yet' USING ERRCODE = substr(NEW.event_id, 6);
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fail_by_name BEFORE INSERT ON processed_events
        FOR EACH ROW WHEN (NEW.event_id LIKE 'code-%') EXECUTE FUNCTION fail_by_name();
";

/// What another connection may cure, with what it is.
const ANOTHER_CONNECTION: [&str; 12] = [
    "25006", // read-only after a failover
    "53300", // too many connections
    "40001", // serialization failure
    "40P01", // deadlock
    "57P01", // an administrator's shutdown
    "57P02", // a crash's
    "57P03", // starting up
    "28P01", // the password was rotated
    "28000", // the token expired
    "08006", // connection failure
    "08P01", // protocol violation, as poolers have it
    "08003", // no connection
];

fn event_of(code: &str) -> String {
    format!("code-{code}")
}

async fn world_that_fails(trigger: &str, codes: &[&str]) -> World {
    let world = World::start().await;
    // A sequence counts tries also where the transaction is rolled back.
    for code in codes {
        let sequence = format!("CREATE SEQUENCE tries_{}", code.to_lowercase());
        world.database.execute(&sequence).await;
    }
    world.database.execute(trigger).await;
    world
}

/// Each event in a batch of its own: in lease mode those of one batch meet the same error.
async fn invoke_each(world: &World, codes: &[&str]) -> Vec<String> {
    let mut failed = Vec::new();
    for code in codes {
        let event_id = event_of(code);
        let record = Record::new(&event_id, &interview(&event_id));
        failed.extend(world.sandbox.invoke(batch([record])).await.failed);
    }
    failed
}

async fn tries_of(world: &World, code: &str) -> i64 {
    let query = format!("SELECT last_value FROM tries_{}", code.to_lowercase());
    world.database.query(&query, &[]).await[0].get(0)
}

/// Each of these codes, met at the claim, ends so, after so many tries on as many connections.
async fn assert_codes(codes: &[&str], tries: i64, expected: impl Fn(&str) -> Ending<'_>) -> World {
    let world = world_that_fails(FAIL_BY_NAME, codes).await;

    let failed = invoke_each(&world, codes).await;

    assert_eq!(failed.len(), codes.len(), "{failed:?}");
    world.ses.assert_requests(0);
    world.database.assert_claims(&[]).await;
    for code in codes {
        let line = world.sandbox.logs.outcome_of(&event_of(code)).await;
        assert_eq!(Ending::of(&line), expected(code), "{}", line.text);
        assert_eq!(tries_of(&world, code).await, tries, "tries of {code}");
    }
    world
}

#[tokio::test]
async fn what_another_connection_does_not_cure_is_reported_for_a_later_try() {
    assert_codes(&ANOTHER_CONNECTION, 3, |code| Ending::not_cured(code)).await;
}

#[tokio::test]
async fn what_another_connection_cures_is_one_email_and_no_failure() {
    let world = world_that_fails(FAIL_TWICE_BY_NAME, &ANOTHER_CONNECTION).await;

    let failed = invoke_each(&world, &ANOTHER_CONNECTION).await;
    assert_eq!(failed, [""; 0]);

    world.ses.assert_emails(ANOTHER_CONNECTION.len());
    let claims = world.database.claims().await;
    assert_eq!(claims.len(), ANOTHER_CONNECTION.len());
    for code in ANOTHER_CONNECTION {
        assert_eq!(tries_of(&world, code).await, 3, "tries of {code}");
    }
}

#[tokio::test]
async fn what_passes_with_time_is_reported_without_another_connection() {
    let codes = [
        "57014", // statement timeout
        "25P03", // idle in transaction for too long
        "53100", // disk full
        "53200", // out of memory
        "58030", // an I/O error
        "XX000", // an internal error
        "P0001", // what a trigger raises
    ];
    assert_codes(&codes, 1, |code| Ending::try_again("database", code)).await;
}

/// A neighbour holds the key.
#[tokio::test]
async fn a_lock_that_is_not_had_in_time_is_reported_without_another_connection() {
    let ending = match Mode::of_this_run() {
        Mode::Transaction => Ending::try_again("database", "55P03"),
        // Where all keys are asked for in one statement, that is how a neighbour in transaction mode is met.
        Mode::Lease => Ending {
            code: None,
            ..Ending::try_again("in_progress", "")
        },
    };
    assert_codes(&["55P03"], 1, |_| ending).await;
}

#[tokio::test]
async fn what_is_set_up_wrongly_is_an_error_without_another_connection() {
    let codes = [
        "42P01", // no such table
        "42703", // no such column
        "42501", // no privilege
        "3F000", // no such schema
        "3D000", // no such database
        "42883", // no such function
    ];
    let world = assert_codes(&codes, 1, |code| Ending::ours("database_setup", code)).await;
    assert_eq!(counts(&world).await, json!({ "SetupErrors": 1 }));
}

#[tokio::test]
async fn data_that_postgres_cannot_take_is_refused_without_another_connection_and_never_quoted() {
    let codes = [
        "22021", // NUL in a text
        "22P02", // a text that is no number
        "22003", // a number out of range
        "22P05", // a character that the encoding has not
        "22007", // no time
    ];
    let world = assert_codes(&codes, 1, |code| Ending::never("impossible_data", code)).await;
    assert!(
        !world.sandbox.logs.text().contains('@'),
        "{}",
        world.sandbox.logs.text()
    );
}
