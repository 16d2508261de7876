//! A key that is derived from fields deduplicates by what the folder declares.

use serde_json::json;

use crate::support::event::{Record, batch, order_placed};
use crate::support::world::World;

#[tokio::test]
async fn a_second_message_about_one_order_is_a_duplicate_whatever_it_adds() {
    let world = World::start().await;
    world.sandbox.handles("m-1", &order_placed(1001)).await;

    let mut later = order_placed(1001);
    later["timestamp"] = json!("2026-12-04T00:00:00Z");
    let mut again = order_placed(1001);
    again["event_id"] = json!("e-2");
    again["nested"] = json!({ "attempt": 2 });
    let records = [Record::new("m-2", &later), Record::new("m-3", &again)];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    world.ses.assert_emails(1);
}
