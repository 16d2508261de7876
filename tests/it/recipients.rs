//! Outside production nobody is written to by accident.

use crate::support::event::{Record, batch, status_changed};
use crate::support::mail::Mailbox;
use crate::support::world::World;

async fn world_that_allows(list: &str, redirect: Option<&str>) -> World {
    World::start_with(|environment| {
        let environment = environment.with("RECIPIENT_ALLOW_LIST", list);
        match redirect {
            Some(redirect) => environment.with("RECIPIENT_REDIRECT", redirect),
            None => environment,
        }
    })
    .await
}

/// Handles one event for a candidate of this address; it must not fail.
async fn write_to(world: &World, event_id: &str, address: &str) {
    let application = world.database.application_of("Someone", "", address).await;
    let event = status_changed(event_id, application, "reviewing", "interview");
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &event)]))
        .await
        .assert_none_failed();
}

#[tokio::test]
async fn whoever_is_on_the_list_is_written_to() {
    let world = world_that_allows("@example.com, me@example.org,@bücher.example", None).await;
    let allowed = [
        "anyone@example.com",
        "Someone@EXAMPLE.com",
        "me@example.org",
        "me@EXAMPLE.ORG",
        "anyone@bücher.example",
        "anyone@xn--bcher-kva.example",
    ];
    for (number, address) in allowed.into_iter().enumerate() {
        write_to(&world, &format!("event-{number}"), address).await;
        world.ses.assert_emails(number + 1);
    }
}

#[tokio::test]
async fn whoever_is_not_on_the_list_is_not_written_to_and_that_is_recorded() {
    let world = world_that_allows("@example.com,me@example.org", None).await;
    let others = [
        "you@example.org",
        "notme@example.org",
        "me@example.org.example.net",
        "me@notexample.com",
        "me@sub.example.com",
        "me@example.com.example.net",
    ];
    for (number, address) in others.into_iter().enumerate() {
        let event_id = format!("event-{number}");
        write_to(&world, &event_id, address).await;
        let claim = world.database.claim(&event_id).await.expect("a claim");
        assert_eq!(
            (claim.outcome.as_str(), claim.ses_message_id),
            ("withheld", None),
            "{address}"
        );
        assert_eq!(
            world.sandbox.logs.outcome_of(&event_id).await.outcome(),
            "withheld"
        );
    }
    world.ses.assert_requests(0);
}

#[tokio::test]
async fn a_withheld_email_stays_withheld() {
    let world = world_that_allows("@example.com", None).await;
    let application = world
        .database
        .application_of("Someone", "", "eve@example.net")
        .await;
    let event = status_changed("withheld", application, "reviewing", "interview");

    world
        .sandbox
        .invoke(batch([Record::new("m-1", &event)]))
        .await
        .assert_none_failed();
    world
        .sandbox
        .invoke(batch([Record::new("m-2", &event)]))
        .await
        .assert_none_failed();

    let lines = world.sandbox.logs.outcomes_of("withheld", 2).await;
    assert_eq!(
        (lines[0].outcome(), lines[1].outcome()),
        ("withheld", "duplicate")
    );
    world.ses.assert_requests(0);
}

#[tokio::test]
async fn with_a_redirect_its_address_gets_what_others_would_have_got() {
    let world = world_that_allows("me@example.org", Some("team@example.org")).await;

    write_to(&world, "mine", "me@example.org").await;
    write_to(&world, "yours", "you@example.net").await;

    let recipients: Vec<Mailbox> = world.ses.emails().iter().map(|email| email.to()).collect();
    assert_eq!(recipients[0].address, "me@example.org");
    assert_eq!(recipients[1].address, "team@example.org");
    assert!(
        !world.ses.emails()[1].body["Destination"]
            .to_string()
            .contains("you@example.net")
    );
    world
        .database
        .assert_claims(&[("mine", "sent"), ("yours", "sent")])
        .await;
}

#[tokio::test]
async fn an_impossible_address_is_refused_whatever_the_list_says() {
    let world = world_that_allows("me@example.org", Some("team@example.org")).await;
    let application = world.database.application_of("Someone", "", "nobody").await;

    let event = status_changed("impossible", application, "reviewing", "interview");
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &event)]))
        .await
        .assert_failed(&["m-1"]);

    world.ses.assert_requests(0);
}
