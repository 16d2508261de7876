//! What SQS is told of messages that failed: when they come back. It is a courtesy, and changes no answer.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::json;

use crate::support::event::{Record, batch, interview, status_changed};
use crate::support::ses::Reply;
use crate::support::world::World;

/// A record received so many times; its message id and its event are of this name.
fn received(times: u32, name: &str) -> Record {
    Record::new(name, &interview(name)).with(
        "attributes",
        json!({ "ApproximateReceiveCount": times.to_string() }),
    )
}

fn paused() -> Reply {
    Reply::refuse(400, "SendingPausedException", "Email sending is disabled.")
}

/// Up to a quarter is taken off at random.
fn jittered(seconds: u64) -> RangeInclusive<u64> {
    seconds * 3 / 4..=seconds
}

/// What SQS was told of the message, once.
#[track_caller]
fn delay_of(world: &World, name: &str) -> u64 {
    match world.sqs.delays_of(name).as_slice() {
        [delay] => *delay,
        delays => panic!("{name} was told {delays:?}"),
    }
}

#[tokio::test]
async fn the_delay_doubles_with_each_receive_from_half_a_minute_to_a_quarter_of_an_hour() {
    let world = World::start().await;
    world.ses.reply_always(paused());
    let expected = [
        (1, 30),
        (2, 60),
        (3, 120),
        (4, 240),
        (5, 480),
        (6, 900),
        (7, 900),
        (1000, 900),
    ];

    let records = expected.map(|(times, _)| received(times, &format!("received-{times}")));
    let answer = world.sandbox.invoke(batch(records)).await;

    assert_eq!(answer.failed.len(), expected.len());
    for (times, seconds) in expected {
        let delay = delay_of(&world, &format!("received-{times}"));
        assert!(
            jittered(seconds).contains(&delay),
            "{delay} s after {times} receives"
        );
    }
}

#[tokio::test]
async fn what_failed_together_does_not_come_back_together() {
    let world = World::start().await;
    world.ses.reply_always(paused());

    let names: Vec<String> = (0..10).map(|number| format!("event-{number}")).collect();
    let records = names.iter().map(|name| received(6, name));
    world.sandbox.invoke(batch(records)).await;

    let mut delays: Vec<u64> = names.iter().map(|name| delay_of(&world, name)).collect();
    delays.sort_unstable();
    delays.dedup();
    // Of 225 possible seconds each; that half of ten fall together has a chance of one in a thousand million.
    assert!(delays.len() > 5, "{delays:?}");
}

#[tokio::test]
async fn after_an_unknown_outcome_the_delay_is_the_longer_of_the_two() {
    let world = World::start_with(|environment| environment.with("IN_DOUBT_WAIT", "200")).await;
    world.ses.reply_always(Reply::accept_without_reply());

    let records = [received(1, "new"), received(6, "old")];
    let answer = world.sandbox.invoke(batch(records)).await;

    answer.assert_failed(&["new", "old"]);
    assert_eq!(delay_of(&world, "new"), 200);
    assert!(jittered(900).contains(&delay_of(&world, "old")));
}

/// SQS may hand a message out twice at once. The copy that only waited for the first must not bring it back before
/// SES's word.
#[tokio::test]
async fn a_message_that_is_twice_in_a_batch_comes_back_at_the_later_of_the_two_times() {
    let world = World::start().await;
    world
        .ses
        .reply_to_event("twice", Reply::accept_without_reply());

    world
        .sandbox
        .invoke(batch([received(1, "twice"), received(1, "twice")]))
        .await
        .assert_failed(&["twice", "twice"]);

    assert_eq!(world.sqs.delays_of("twice"), [120, 120]);
}

#[tokio::test]
async fn only_what_failed_for_a_passing_reason_is_told_of() {
    let world = World::start().await;
    world.ses.reply_to_event("paused", paused());

    let hopeless = status_changed("hopeless", -1, "reviewing", "offer");
    let gone = status_changed("gone", 9999, "reviewing", "offer");
    let records = [
        received(1, "sent"),
        received(1, "paused"),
        Record::new("refused", &hopeless),
        Record::new("skipped", &gone),
        Record::new("duplicate", &interview("sent")),
    ];
    let answer = world.sandbox.invoke(batch(records)).await;

    answer.assert_failed(&["paused", "refused"]);
    assert_eq!(world.sqs.sizes_of_visibility_requests(), [1]);
    assert!(jittered(30).contains(&delay_of(&world, "paused")));
}

#[tokio::test]
async fn twenty_five_failures_are_three_requests_of_at_most_ten() {
    let world = World::start().await;
    world.ses.reply_always(paused());

    let names: Vec<String> = (0..25).map(|number| format!("event-{number}")).collect();
    let records = names.iter().map(|name| received(1, name));
    let answer = world.sandbox.invoke(batch(records)).await;

    assert_eq!(answer.failed.len(), 25);
    let mut sizes = world.sqs.sizes_of_visibility_requests();
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 10, 10]);
    for name in &names {
        delay_of(&world, name);
    }
}

#[tokio::test]
async fn a_record_without_a_receipt_handle_or_a_queue_is_reported_all_the_same() {
    let world = World::start().await;
    world.ses.reply_always(paused());

    let records = [
        received(1, "handled"),
        received(1, "no-handle").without("receiptHandle"),
        received(1, "no-attributes").without("attributes"),
    ];
    world.sandbox.invoke(batch(records)).await.assert_failed(&[
        "handled",
        "no-handle",
        "no-attributes",
    ]);
    assert_eq!(world.sqs.sizes_of_visibility_requests(), [2]);
    assert!(jittered(30).contains(&delay_of(&world, "no-attributes")));

    let nowhere = received(1, "nowhere").without("eventSourceARN");
    world
        .sandbox
        .invoke(batch([nowhere]))
        .await
        .assert_failed(&["nowhere"]);
    assert_eq!(world.sqs.delays_of("nowhere"), [0; 0]);
}

#[tokio::test]
async fn an_sqs_that_refuses_some_or_all_changes_no_answer() {
    let world = World::start().await;
    world.ses.reply_to_event("paused", paused());
    world.ses.reply_to_event("paused", paused());
    let records = [received(1, "paused"), received(1, "sent")];

    world.sqs.fail_entries();
    world
        .sandbox
        .invoke(batch(records.clone()))
        .await
        .assert_failed(&["paused"]);
    world.sqs.deny_everything();
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["paused"]);

    let untold = |line: &crate::support::logs::Line| {
        let message = line.field("message").as_str().unwrap_or_default();
        message.contains("visibility timeout")
    };
    let lines = world
        .sandbox
        .logs
        .wait_for_several(2, "SQS could not be told", untold)
        .await;
    assert!(lines.iter().all(|line| line.level() == "INFO"));
    assert!(
        lines[0].text.contains("ReceiptHandleIsInvalid"),
        "{}",
        lines[0].text
    );
}

#[tokio::test]
async fn a_silent_sqs_neither_changes_the_answer_nor_delays_it_past_the_deadline() {
    let world = World::start().await;
    world.sqs.fall_silent();
    // Two seconds before the deadline SES is given up; SQS is asked in what is left.
    world.ses.reply_to_event("unheard", Reply::silence());
    world.ses.reply_to_event("paused", paused());

    let records = [
        received(1, "unheard"),
        received(1, "paused"),
        received(1, "sent"),
    ];
    let answer = world
        .sandbox
        .invoke_within(batch(records), Duration::from_secs(8))
        .await;

    answer.assert_failed(&["unheard", "paused"]);
    assert!(!world.sqs.actions().is_empty(), "SQS was not asked");
    world
        .assert_claims_and_doubts(&[("sent", "sent")], &["unheard"])
        .await;
}

/// It waits for SES's word no longer than SQS can keep a message back.
#[tokio::test]
async fn the_longest_wait_is_one_that_sqs_takes() {
    let world = World::start_with(|environment| environment.with("IN_DOUBT_WAIT", "43200")).await;
    world.ses.reply_always(Reply::accept_without_reply());

    world
        .sandbox
        .invoke(batch([received(1, "unclear")]))
        .await
        .assert_failed(&["unclear"]);

    // Twelve hours count from when the message was received, which was before the invocation.
    let delay = delay_of(&world, "unclear");
    assert!(
        delay < 43_200,
        "SQS refuses {delay} s for a message received before now"
    );
}
