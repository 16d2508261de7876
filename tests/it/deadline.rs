//! The time of an invocation: the answer comes before Lambda stops the sandbox, and says what was not handled.

use std::time::Duration;

use crate::support::event::{Record, batch, interview, order_placed};
use crate::support::logs::Line;
use crate::support::proxy::{End, Then};
use crate::support::ses::Reply;
use crate::support::world::World;

#[tokio::test]
async fn a_record_is_not_started_when_too_little_time_is_left_to_finish_it() {
    let (world, proxy) = World::start_with_proxy().await;

    let events = batch([
        Record::new("m-1", &interview("late")),
        Record::new("m-2", &interview("later")),
    ]);
    let answer = world
        .sandbox
        .invoke_within(events, Duration::from_secs(4))
        .await;

    answer.assert_failed(&["m-1", "m-2"]);
    world.ses.assert_requests(0);
    let claimed = proxy
        .messages()
        .iter()
        .any(|message| message.contains("INSERT INTO processed_events"));
    assert!(!claimed, "a record was started");
    // Nor would one ever be, with such a timeout.
    let told = |line: &Line| line.level() == "ERROR" && line.text.contains("timeout");
    world.sandbox.logs.wait_for("an error line", told).await;
    let setup_errors = |line: &Line| line.is_metric() && line.field("SetupErrors") == 1.0;
    world
        .sandbox
        .logs
        .wait_for("the metric", setup_errors)
        .await;
}

#[tokio::test]
async fn while_ses_is_silent_the_answer_comes_before_the_deadline_and_nothing_is_settled() {
    let world = World::start().await;
    world.ses.reply_to_event("unheard", Reply::silence());

    let events = batch([
        Record::new("m-1", &interview("unheard")),
        Record::new("m-2", &interview("heard")),
    ]);
    let answer = world
        .sandbox
        .invoke_within(events, Duration::from_secs(8))
        .await;

    answer.assert_failed(&["m-1"]);
    world.ses.assert_requests(2);
    world
        .assert_claims_and_doubts(&[("heard", "sent")], &["unheard"])
        .await;
}

#[tokio::test]
async fn while_postgres_is_silent_the_answer_comes_before_the_deadline_and_nothing_is_sent() {
    let (world, proxy) = World::start_with_proxy().await;
    world
        .sandbox
        .invoke(batch([Record::new("m-0", &interview("before"))]))
        .await
        .assert_none_failed();
    // On however many connections it is tried.
    let silent = [0; 20].map(|_| proxy.at("INSERT INTO processed_events", Then::Swallow));

    let events = batch([Record::new("m-1", &interview("unheard"))]);
    let running = world.sandbox.begin_within(events, Duration::from_secs(8));
    silent[0].happened().await;
    running.answer().await.assert_failed(&["m-1"]);

    world.ses.assert_requests(1);
    proxy.forget_rules();
    proxy.end_connections(End::Reset).await;
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("unheard"))]))
        .await
        .assert_none_failed();
    world.ses.assert_emails(2);
}

#[tokio::test]
async fn a_neighbour_that_locks_the_job_board_costs_a_retry_and_not_the_deadline() {
    let world = World::start().await;
    let neighbour = world.database.neighbour().await;
    let lock = "BEGIN; LOCK TABLE jobs_application IN ACCESS EXCLUSIVE MODE";
    neighbour
        .batch_execute(lock)
        .await
        .expect("nobody else holds it");

    let events = batch([
        Record::new("m-1", &interview("locked")),
        Record::new("m-2", &order_placed(1001)),
    ]);
    let answer = world
        .sandbox
        .invoke_within(events.clone(), Duration::from_secs(8))
        .await;
    neighbour
        .batch_execute("COMMIT")
        .await
        .expect("it is still connected");

    answer.assert_failed(&["m-1"]);
    world.sandbox.invoke(events).await.assert_none_failed();
    world.ses.assert_requests(2);
}

#[tokio::test]
async fn what_was_not_started_in_time_is_reported_and_what_was_is_finished() {
    const COUNT: usize = 60;
    let world = World::start_with(|environment| environment.with("MAX_IN_FLIGHT", "1")).await;
    world
        .ses
        .reply_always(Reply::accept().delayed(Duration::from_millis(250)));

    let records = (1..=COUNT).map(|number| {
        Record::new(
            &format!("m-{number}"),
            &interview(&format!("event-{number}")),
        )
    });
    let answer = world
        .sandbox
        .invoke_within(batch(records), Duration::from_secs(8))
        .await;

    let sent = world.ses.emails().len();
    assert!(sent > 0 && sent < COUNT, "{sent} sent");
    assert_eq!(
        sent + answer.failed.len(),
        COUNT,
        "each record is either sent or reported"
    );
    world.ses.assert_requests(sent);
    assert_eq!(world.database.claims().await.len(), sent);
}

#[tokio::test]
async fn a_slow_answer_of_ses_is_waited_for_while_there_is_time() {
    let world = World::start().await;
    world
        .ses
        .reply_next(Reply::accept().delayed(Duration::from_secs(6)));

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("slow"))]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(1);
    world.database.assert_claims(&[("slow", "sent")]).await;
}

#[tokio::test]
async fn an_invocation_after_one_that_ran_out_of_time_starts_afresh() {
    let world = World::start_with(|environment| environment.with("IN_DOUBT_WAIT", "0")).await;
    world.ses.reply_next(Reply::silence());

    let events = batch([Record::new("m-1", &interview("slow"))]);
    world
        .sandbox
        .invoke_within(events.clone(), Duration::from_secs(8))
        .await
        .assert_failed(&["m-1"]);
    world.sandbox.invoke(events).await.assert_none_failed();

    world.ses.assert_emails(1);
    world.database.assert_claims(&[("slow", "sent")]).await;
}
