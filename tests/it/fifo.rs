//! A FIFO queue keeps its order within a message group.

use std::time::Duration;

use crate::support::event::{Record, batch, interview, status_changed};
use crate::support::gate::Gate;
use crate::support::ses::Reply;
use crate::support::world::World;

fn in_group(group: &str, event_id: &str) -> Record {
    Record::new(&format!("m-{event_id}"), &interview(event_id)).in_group(group)
}

#[tokio::test]
async fn within_a_group_emails_leave_in_order_and_one_at_a_time() {
    let world = World::start().await;

    let records = ["a", "b", "c", "d", "e"].map(|event_id| in_group("group", event_id));
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    let order: Vec<String> = world
        .ses
        .emails()
        .iter()
        .map(|email| email.event_id())
        .collect();
    assert_eq!(order, ["a", "b", "c", "d", "e"]);
    assert_eq!(world.ses.most_in_flight(), 1);
}

#[tokio::test]
async fn groups_do_not_wait_for_each_other() {
    let world = World::start().await;
    let gate = Gate::closed();
    world
        .ses
        .reply_to_event("slow-1", Reply::accept().after(&gate));

    let records = [
        in_group("slow", "slow-1"),
        in_group("slow", "slow-2"),
        in_group("quick", "quick-1"),
        in_group("quick", "quick-2"),
    ];
    let running = world.sandbox.begin(batch(records));
    let so_far: Vec<String> = world
        .ses
        .received(3)
        .await
        .iter()
        .map(|email| email.event_id())
        .collect();
    gate.open();

    running.answer().await.assert_none_failed();
    assert!(
        so_far.contains(&"quick-2".to_owned()) && !so_far.contains(&"slow-2".to_owned()),
        "{so_far:?}"
    );
    world.ses.assert_emails(4);
}

#[tokio::test]
async fn after_a_failure_the_rest_of_the_group_is_reported_and_untouched() {
    let world = World::start().await;
    world
        .ses
        .reply_to_event("a-2", Reply::accept_without_reply());

    let records = [
        in_group("a", "a-1"),
        in_group("b", "b-1"),
        in_group("a", "a-2"),
        in_group("b", "b-2"),
        in_group("a", "a-3"),
        in_group("a", "a-4"),
        in_group("b", "b-3"),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-a-2", "m-a-3", "m-a-4"]);

    let sent = ["a-1", "b-1", "b-2", "b-3"].map(|event_id| (event_id, "sent"));
    world.assert_claims_and_doubts(&sent, &["a-2"]).await;
    world.ses.assert_requests(5);
}

#[tokio::test]
async fn a_send_that_failed_holds_up_its_group_until_it_is_done() {
    let world = World::start().await;
    let records = batch(["a", "b", "c"].map(|event_id| in_group("group", event_id)));
    world.ses.reply_next(Reply::refuse(
        400,
        "SendingPausedException",
        "Email sending is disabled.",
    ));

    world
        .sandbox
        .invoke(records.clone())
        .await
        .assert_failed(&["m-a", "m-b", "m-c"]);
    world.ses.assert_emails(0);
    world.sandbox.invoke(records).await.assert_none_failed();

    let order: Vec<String> = world
        .ses
        .emails()
        .iter()
        .map(|email| email.event_id())
        .collect();
    assert_eq!(order, ["a", "b", "c"]);
}

#[tokio::test]
async fn an_undecodable_body_holds_up_its_group_alone() {
    let world = World::start().await;

    let records = [
        in_group("a", "a-1").with("body", "poison"),
        in_group("a", "a-2"),
        in_group("b", "b-1"),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-a-1", "m-a-2"]);

    world.database.assert_claims(&[("b-1", "sent")]).await;
}

#[tokio::test]
async fn what_is_done_without_an_email_holds_up_nothing() {
    let world = World::start().await;
    world
        .sandbox
        .invoke(batch([in_group("group", "seen")]))
        .await
        .assert_none_failed();

    let gone = status_changed("gone", 9999, "reviewing", "offer").to_string();
    let records = [
        in_group("group", "seen"),
        in_group("group", "gone").with("body", gone),
        in_group("group", "next"),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    world
        .database
        .assert_claims(&[("gone", "skipped"), ("next", "sent"), ("seen", "sent")])
        .await;
}

#[tokio::test]
async fn on_a_standard_queue_a_group_id_orders_nothing() {
    let world = World::start().await;
    world
        .ses
        .reply_to_event("one", Reply::refuse(400, "MessageRejected", "No."));

    // Standard queues may carry group ids too, for fair sharing among tenants.
    let standard = "arn:aws:sqs:eu-west-1:123456789012:job-board-events";
    let records = ["one", "two"]
        .map(|event_id| in_group("tenant", event_id).with("eventSourceARN", standard));
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-one"]);

    world.database.assert_claims(&[("two", "sent")]).await;
}

#[tokio::test]
async fn a_group_does_not_run_past_the_deadline() {
    const COUNT: usize = 60;
    let world = World::start().await;
    world
        .ses
        .reply_always(Reply::accept().delayed(Duration::from_millis(250)));

    let records = (1..=COUNT).map(|number| in_group("group", &format!("e-{number}")));
    let answer = world
        .sandbox
        .invoke_within(batch(records), Duration::from_secs(8))
        .await;

    let sent = world.ses.emails().len();
    assert!(sent > 0 && sent < COUNT, "{sent} sent");
    let rest: Vec<String> = (sent + 1..=COUNT)
        .map(|number| format!("m-e-{number}"))
        .collect();
    answer.assert_failed(&rest.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Postgres takes no row that says so, until the deadline: it comes back, and must not be overtaken.
#[tokio::test]
async fn what_was_skipped_and_not_written_holds_up_its_group() {
    let world = World::start().await;
    let trigger = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                   BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$;
                   CREATE TRIGGER refuse BEFORE UPDATE ON processed_events
                       FOR EACH ROW WHEN (NEW.outcome = 'skipped') EXECUTE FUNCTION refuse()";
    world.database.execute(trigger).await;

    let gone = status_changed("gone", 9999, "reviewing", "offer").to_string();
    let records = [
        in_group("group", "first"),
        in_group("group", "gone").with("body", gone),
        in_group("group", "next"),
        in_group("other", "other"),
    ];
    world
        .sandbox
        .invoke_within(batch(records), Duration::from_secs(8))
        .await
        .assert_failed(&["m-gone", "m-next"]);

    let order = world.ses.emails();
    let order = order.iter().map(|email| email.event_id());
    let mut order: Vec<String> = order.collect();
    order.sort_unstable();
    assert_eq!(order, ["first", "other"]);
}
