//! Order within a FIFO group, `MAX_IN_FLIGHT` and `SES_MAX_SEND_RATE`, where all keys are claimed before the first email.

use std::time::{Duration, Instant};

use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{named, start, start_with};

fn in_group(group: &str, event_id: &str) -> Record {
    Record::new(event_id, &interview(event_id)).in_group(group)
}

fn order_of(world: &World) -> Vec<String> {
    let emails = world.ses.emails();
    emails.iter().map(|email| email.event_id()).collect()
}

#[tokio::test]
async fn a_group_is_claimed_at_once_and_sent_one_after_another() {
    let world = start().await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&gate));
    // Not in the order of their keys.
    let names = ["c", "a", "d", "b"];

    let running = world
        .sandbox
        .begin(batch(names.map(|name| in_group("group", name))));
    world.ses.received(1).await;
    let sending = ["a", "b", "c", "d"].map(|name| (name, "sending"));
    world.database.assert_claims(&sending).await;
    gate.open();

    running.answer().await.assert_none_failed();
    assert_eq!(order_of(&world), names);
    assert_eq!(world.ses.most_in_flight(), 1);
}

#[tokio::test]
async fn behind_a_failure_in_the_middle_of_a_group_nothing_is_sent_and_no_row_is_left() {
    for (reply, row_of_the_failed) in [
        (
            Reply::refuse(400, "SendingPausedException", "Email sending is disabled."),
            None,
        ),
        (Reply::accept_without_reply(), Some("sending")),
        (Reply::refuse(400, "MessageRejected", "No."), None),
    ] {
        let world = start().await;
        world.ses.reply_to_event("two", reply);

        let group = ["one", "two", "three", "four"].map(|name| in_group("group", name));
        let other = ["five", "six"].map(|name| in_group("other", name));
        world
            .sandbox
            .invoke(batch(group.into_iter().chain(other)))
            .await
            .assert_failed(&["two", "three", "four"]);

        world.ses.assert_requests(4);
        let mut expected = vec![("five", "sent"), ("one", "sent"), ("six", "sent")];
        expected.extend(row_of_the_failed.map(|outcome| ("two", outcome)));
        expected.sort_unstable();
        world.database.assert_claims(&expected).await;
        let line = world.sandbox.logs.outcome_of("three").await;
        assert_eq!(line.field("reason"), "behind_a_failure");
    }
}

/// The second claim of a batch that has a key twice must not overtake the first.
#[tokio::test]
async fn a_key_that_is_twice_in_a_group_keeps_the_groups_order() {
    let world = start().await;
    let again = in_group("group", "a").with("messageId", "a-again");

    let records = [
        in_group("group", "a"),
        in_group("group", "b"),
        again,
        in_group("group", "c"),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    assert_eq!(order_of(&world), ["a", "b", "c"]);
}

#[tokio::test]
async fn behind_a_failure_also_what_is_claimed_in_a_second_round_waits() {
    let world = start().await;
    world.ses.reply_to_event(
        "b",
        Reply::refuse(400, "SendingPausedException", "Email sending is disabled."),
    );
    let again = in_group("group", "a").with("messageId", "a-again");

    let records = [
        in_group("group", "a"),
        in_group("group", "b"),
        again,
        in_group("group", "c"),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["b", "a-again", "c"]);

    world.database.assert_claims(&[("a", "sent")]).await;
    world.ses.assert_requests(2);
}

#[tokio::test]
async fn no_more_emails_are_in_flight_than_max_in_flight_says() {
    let world = start_with(|environment| environment.with("MAX_IN_FLIGHT", "3")).await;
    let gate = Gate::closed();
    let delay = Duration::from_millis(100);
    world
        .ses
        .reply_always(Reply::accept().after(&gate).delayed(delay));

    let names: Vec<String> = (0..9).map(|number| format!("event-{number}")).collect();
    let records = names.iter().map(|name| named(name));
    let running = world.sandbox.begin(batch(records));
    world.ses.received(3).await;
    // The keys of those that wait are ours already.
    assert_eq!(world.database.claims().await.len(), 9);
    gate.open();

    running.answer().await.assert_none_failed();
    assert_eq!(world.ses.most_in_flight(), 3);
}

#[tokio::test]
async fn what_the_rate_leaves_no_time_for_is_released_and_its_row_gone() {
    let world = start_with(|environment| environment.with("SES_MAX_SEND_RATE", "1")).await;
    let names: Vec<String> = (0..20).map(|number| format!("event-{number}")).collect();

    let records = names.iter().map(|name| named(name));
    let answer = world
        .sandbox
        .invoke_within(batch(records), Duration::from_secs(9))
        .await;

    let sent = world.ses.emails().len();
    assert!(sent > 0 && sent < 20, "{sent} sent");
    assert_eq!(sent + answer.failed.len(), 20);
    let claims = world.database.claims().await;
    assert_eq!(claims.len(), sent);
    assert!(claims.iter().all(|claim| claim.outcome == "sent"));
    let line = world.sandbox.logs.outcome_of(&answer.failed[0]).await;
    assert_eq!(line.field("reason"), "no_time");
    assert_eq!(world.sqs.delays_of(&answer.failed[0]).len(), 1);
}

#[tokio::test]
async fn no_more_emails_a_second_leave_than_the_rate_allows() {
    let world = start_with(|environment| environment.with("SES_MAX_SEND_RATE", "10")).await;
    let names: Vec<String> = (0..25).map(|number| format!("event-{number}")).collect();

    let records = names.iter().map(|name| named(name));
    let began = Instant::now();
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    // From before the first, which may take its time on the way.
    let took = world.ses.emails()[24].at - began;
    // At ten a second the 25th follows 2.4 s after it.
    assert!(took >= Duration::from_millis(2400), "within {took:?}");
}
