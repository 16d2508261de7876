//! No line shows an address that a producer has put into a key or a status.

use crate::support::event::{Record, batch, status_changed};
use crate::support::logs::Line;
use crate::support::world::World;

#[tokio::test]
async fn an_address_in_a_key_or_a_status_is_masked_and_the_line_is_still_found() {
    let world = World::start().await;
    let keys = [
        "order-1001-jane@example.org",
        "order-1002:jane%40example.org",
        "order-1003/\"jane\"@example.org",
    ];
    for key in keys {
        let status = "asked jane@example.org";
        let event = status_changed(key, 3, status, "offer");
        world.sandbox.handles("m-1", &event).await;
        assert!(
            world.database.claim(key).await.is_some(),
            "the ledger keeps the key"
        );
    }
    let refused = status_changed("order-1001-jane@example.org", 4, "x", "offer");
    world
        .sandbox
        .invoke(batch([Record::new("m-2", &refused)]))
        .await
        .assert_failed(&["m-2"]);

    for number in ["order-1001", "order-1002", "order-1003"] {
        let is_found = |line: &Line| line.field("event_id").to_string().contains(number);
        world.sandbox.logs.wait_for(number, is_found).await;
    }
    world.sandbox.logs.outcome_of_message("m-2").await;
    let text = world.sandbox.logs.text();
    assert!(!text.contains("jane"), "{text}");
}
