//! No mailbox is longer than SES takes: 320 characters as it is written.

use crate::support::event::{Record, batch, interview, status_changed};
use crate::support::world::World;

const MOST: usize = 320;

fn recipients(world: &World) -> Vec<String> {
    let requests = world.ses.requests();
    let to = |body: &serde_json::Value| body["Destination"]["ToAddresses"][0].to_string();
    requests
        .iter()
        .map(|request| serde_json::from_str(&to(&request.body)).expect("a string"))
        .collect()
}

#[tokio::test]
async fn a_name_is_cut_so_that_the_whole_recipient_fits() {
    let world = World::start().await;
    let names = ["é", "李", "🙂", "\"", "\\", "a", "Ж"].map(|unit| unit.repeat(150));
    let mut events = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let application = world
            .database
            .application_of(name, "", "m.mustermann@inbox.example")
            .await;
        let id = format!("long-{number}");
        events.push(Record::new(
            &id,
            &status_changed(&id, application, "reviewing", "offer"),
        ));
    }

    world
        .sandbox
        .invoke(batch(events))
        .await
        .assert_none_failed();

    let recipients = recipients(&world);
    assert_eq!(recipients.len(), names.len());
    for to in recipients {
        assert!(to.len() <= MOST, "{}: {to}", to.len());
        assert!(to.ends_with("<m.mustermann@inbox.example>"), "{to}");
        assert!(to.len() > MOST / 2, "more was cut than had to be: {to}");
    }
}

#[tokio::test]
async fn senders_and_reply_addresses_fit_too() {
    let long = format!("{} <no-reply@example.com>", "Ж".repeat(150));
    let world = World::start_with(|environment| {
        environment
            .with("MAIL_FROM", &long)
            .with("MAIL_REPLY_TO", &long)
    })
    .await;

    world.sandbox.handles("m-1", &interview("e-1")).await;

    let requests = world.ses.requests();
    let body = &requests[0].body;
    for value in [&body["FromEmailAddress"], &body["ReplyToAddresses"][0]] {
        let mailbox = value.as_str().expect("a mailbox");
        assert!(mailbox.len() <= MOST, "{}", mailbox.len());
    }
}
