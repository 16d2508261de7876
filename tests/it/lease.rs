//! Lease mode: the keys of a batch are claimed in a statement that is committed, the emails are sent, and the rows are
//! settled. What holds in both modes is in the other files; here is what only this one does.
//!
//! Time passes by an update of `lease_until`: the database's clock is the only one that counts.

mod crashes;
mod figures;
mod found_by_transactions;
mod held;
mod in_doubt;
mod in_progress;
mod late;
mod left_rows;
mod lost_answers;
mod lost_rows;
mod mixed;
mod neighbours;
mod one_batch;
mod order;
mod outcomes;
mod races;
mod session;
mod together;

use crate::support::environment::Environment;
use crate::support::event::{Record, interview};
use crate::support::lambda::Sandbox;
use crate::support::logs::Line;
use crate::support::mode::Mode;
use crate::support::world::World;

async fn start() -> World {
    World::start_in(Mode::Lease).await
}

async fn start_with(change: impl FnOnce(Environment) -> Environment) -> World {
    World::start_with(|environment| change(environment.with("CLAIM_MODE", Mode::Lease.name())))
        .await
}

/// A message about the event.
fn message(message_id: &str, event_id: &str) -> Record {
    Record::new(message_id, &interview(event_id))
}

/// A message of this name, about an event of this name.
fn named(name: &str) -> Record {
    message(name, name)
}

/// As if so many seconds had passed for all rows that are `sending`.
async fn pass_seconds(world: &World, seconds: u32) {
    let earlier = format!(
        "UPDATE processed_events SET lease_until = lease_until - interval '{seconds} seconds'"
    );
    world.database.execute(&earlier).await;
}

/// For how many seconds the row's lease holds yet.
async fn lease_left(world: &World, event_id: &str) -> f64 {
    let left = "SELECT extract(epoch FROM lease_until - clock_timestamp())::float8 \
                FROM processed_events WHERE event_id = $1";
    world.database.query(left, &[&event_id]).await[0].get(0)
}

/// What SQS was told of the message, once.
#[track_caller]
fn delay_of(world: &World, message_id: &str) -> f64 {
    match world.sqs.delays_of(message_id).as_slice() {
        [delay] => *delay as f64,
        delays => panic!("SQS was told {delays:?} of {message_id}"),
    }
}

/// The outcome of this message's record, its level, and the reason if there is one.
async fn ending(sandbox: &Sandbox, message_id: &str) -> (String, String, Option<String>) {
    let line = sandbox.logs.outcome_of_message(message_id).await;
    let reason = line.field("reason").as_str().map(str::to_owned);
    (line.outcome().to_owned(), line.level().to_owned(), reason)
}

#[track_caller]
fn assert_ending(
    (outcome, level, reason): &(String, String, Option<String>),
    expected: (&str, &str, Option<&str>),
) {
    assert_eq!(
        (outcome.as_str(), level.as_str(), reason.as_deref()),
        expected
    );
}

const IN_PROGRESS: (&str, &str, Option<&str>) = ("released", "WARN", Some("in_progress"));
const IN_DOUBT: (&str, &str, Option<&str>) = ("released", "WARN", Some("in_doubt"));

/// Everything that the sandbox has written, once it is gone.
async fn log_of(sandbox: &Sandbox) -> Vec<Line> {
    sandbox.kill().await;
    sandbox.logs.to_the_end().await
}

fn says(line: &Line, text: &str) -> bool {
    line.field("message")
        .as_str()
        .is_some_and(|message| message.contains(text))
}
