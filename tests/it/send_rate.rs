//! `SES_MAX_SEND_RATE`: as many emails a second as this sandbox may send, and no more.

use std::time::{Duration, Instant};

use crate::support::event::{Record, batch, interview};
use crate::support::world::World;

fn events(count: usize) -> serde_json::Value {
    batch((1..=count).map(|number| {
        Record::new(
            &format!("m-{number}"),
            &interview(&format!("event-{number}")),
        )
    }))
}

#[tokio::test]
async fn no_more_emails_a_second_leave_than_the_rate_allows() {
    let world = World::start_with(|environment| environment.with("SES_MAX_SEND_RATE", "10")).await;

    let began = Instant::now();
    world.sandbox.invoke(events(25)).await.assert_none_failed();

    // From before the first, which may take its time on the way.
    let took = world.ses.emails()[24].at - began;
    // At ten a second the 25th follows 2.4 s after it.
    assert!(
        took >= Duration::from_millis(2400),
        "25 emails left within {took:?}"
    );
}

#[tokio::test]
async fn what_the_rate_leaves_no_time_for_is_reported() {
    let world = World::start_with(|environment| environment.with("SES_MAX_SEND_RATE", "1")).await;

    let answer = world
        .sandbox
        .invoke_within(events(20), Duration::from_secs(9))
        .await;

    let sent = world.ses.emails().len();
    assert!(sent > 0 && sent < 20, "{sent} sent");
    assert_eq!(
        sent + answer.failed.len(),
        20,
        "each record is either sent or reported"
    );
    assert_eq!(world.database.claims().await.len(), sent);
}

#[tokio::test]
async fn without_a_rate_nothing_is_held_back() {
    let world = World::start_with(|environment| environment.with("SES_MAX_SEND_RATE", "0")).await;

    world.sandbox.invoke(events(25)).await.assert_none_failed();

    world.ses.assert_emails(25);
}
