//! A worker whose row is another attempt's by the time that it settles: it changes nothing, and says so.

use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{named, says, start};

/// Somebody takes the row of event `taken` over while SES is asked for it, and then SES answers so. Gives what the
/// row says before and after.
async fn take_over_during_the_send(reply: Reply, how: &str) -> (World, [Option<RowNow>; 2]) {
    let world = start().await;
    let gate = Gate::closed();
    world.ses.reply_to_event("taken", reply.after(&gate));
    world
        .ses
        .reply_to_event("kept", Reply::accept().after(&gate));

    let running = world.sandbox.begin(batch(["taken", "kept"].map(named)));
    world.ses.received(2).await;
    world.database.execute(how).await;
    let before = row_now(&world).await;
    gate.open();
    running.answer().await;

    let kept = world.database.claim("kept").await.expect("a claim");
    assert_eq!(kept.outcome, "sent", "the neighbour is settled");
    let after = row_now(&world).await;
    (world, [before, after])
}

type RowNow = (String, Option<String>, Option<i64>, Option<String>);

async fn row_now(world: &World) -> Option<RowNow> {
    let row = "SELECT outcome, ses_message_id, attempt, lease_until::text FROM processed_events \
               WHERE event_id = 'taken'";
    let rows = world.database.query(row, &[]).await;
    let row = rows.first()?;
    Some((row.get(0), row.get(1), row.get(2), row.get(3)))
}

const TAKE_OVER: &str =
    "UPDATE processed_events SET attempt = attempt # 1 WHERE event_id = 'taken'";

#[tokio::test]
async fn a_sent_email_whose_row_is_another_attempts_leaves_it_as_it_is_and_warns() {
    let (world, [before, after]) = take_over_during_the_send(Reply::accept(), TAKE_OVER).await;

    assert_eq!(before, after);
    assert_eq!(after.expect("a row").0, "sending");
    let warns = |line: &crate::support::logs::Line| {
        line.field("event_id") == "taken" && says(line, "another attempt's")
    };
    let line = world.sandbox.logs.wait_for("the warning", warns).await;
    assert_eq!(line.level(), "WARN");
    // It has left all the same.
    assert_eq!(
        world.sandbox.logs.outcome_of("taken").await.outcome(),
        "sent"
    );
}

#[tokio::test]
async fn a_sent_email_whose_row_is_gone_makes_none_and_warns() {
    let delete = "DELETE FROM processed_events WHERE event_id = 'taken'";
    let (world, [_, after]) = take_over_during_the_send(Reply::accept(), delete).await;

    assert_eq!(after, None);
    let warns = |line: &crate::support::logs::Line| {
        line.field("event_id") == "taken" && says(line, "or gone")
    };
    let line = world.sandbox.logs.wait_for("the warning", warns).await;
    assert_eq!(line.level(), "WARN");
}

#[tokio::test]
async fn what_was_not_sent_does_not_free_the_row_of_another_attempt() {
    let paused = Reply::refuse(400, "SendingPausedException", "Email sending is disabled.");
    let (world, [before, after]) = take_over_during_the_send(paused, TAKE_OVER).await;

    assert_eq!(before, after);
    let tells = |line: &crate::support::logs::Line| {
        line.field("event_id") == "taken" && says(line, "another attempt's")
    };
    world.sandbox.logs.wait_for("the word", tells).await;
}

#[tokio::test]
async fn an_unknown_outcome_does_not_end_the_lease_of_another_attempt() {
    let lost = Reply::accept_without_reply();
    let (_world, [before, after]) = take_over_during_the_send(lost, TAKE_OVER).await;

    assert_eq!(before, after);
    assert!(after.expect("a row").3.is_some());
}

/// SES's word was quicker, and was of another email.
#[tokio::test]
async fn a_row_that_ses_settled_meanwhile_keeps_what_it_says() {
    let told = "UPDATE processed_events SET outcome = 'sent', settled_by = 'ses', lease_until = NULL, \
                ses_message_id = 'told' WHERE event_id = 'taken'";
    let (world, [before, after]) = take_over_during_the_send(Reply::accept(), told).await;

    assert_eq!(before, after);
    let claim = world.database.claim("taken").await.expect("a claim");
    assert_eq!(
        (claim.settled_by.as_str(), claim.ses_message_id.as_deref()),
        ("ses", Some("told"))
    );
}
