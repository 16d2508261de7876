//! What is not seen around an address is dropped, and a direction never reaches beyond its text.

use crate::support::event::{Record, batch, status_changed};
use crate::support::mail::Mailbox;
use crate::support::world::World;

#[tokio::test]
async fn what_is_not_seen_around_an_address_is_dropped() {
    let world = World::start().await;
    let around = [
        "\u{A0}", "\n", "\r\n", "\t", "\u{200B}", "\u{FEFF}", "\u{2060}", "\u{3000}", "\u{AD}",
        "\u{202E}", "\u{200F}", "\u{2028}",
    ];
    for (number, around) in around.into_iter().enumerate() {
        let address = format!("{around}sam@example.com{around}");
        let application = world.database.application_of("Sam", "", &address).await;
        let event = status_changed(&format!("e-{number}"), application, "reviewing", "offer");
        let to = world.email_for(&event).await.to();
        assert_eq!(to, Mailbox::named("Sam", "sam@example.com"), "{around:?}");
    }
}

#[tokio::test]
async fn what_is_not_seen_inside_an_address_is_refused() {
    let world = World::start().await;
    let addresses = [
        "sam@exam\u{AD}ple.com",
        "sam@exam\u{200B}ple.com",
        "sa\u{200D}m@example.com",
        "sam\n@example.com",
    ];
    for (number, address) in addresses.into_iter().enumerate() {
        let application = world.database.application_of("Sam", "", address).await;
        let id = format!("e-{number}");
        let event = Record::new(&id, &status_changed(&id, application, "reviewing", "offer"));
        world
            .sandbox
            .invoke(batch([event]))
            .await
            .assert_failed(&[&id]);
        let line = world.sandbox.logs.outcome_of(&id).await;
        assert!(line.text.contains("impossible_address"), "{}", line.text);
    }
    world.ses.assert_emails(0);
}

#[tokio::test]
async fn a_direction_in_a_name_or_title_never_reaches_beyond_it() {
    let world = World::start().await;
    let application = world
        .database
        .application_for("Engineer\u{202E}\u{2067}", "\u{202E}emcA\u{200F}")
        .await;
    let event = status_changed("e-1", application, "reviewing", "offer");
    let email = world.email_for(&event).await;
    assert_eq!(email.subject(), "You have an offer from emcA");
    for text in [email.text(), email.html()] {
        assert!(
            !text.contains(['\u{202E}', '\u{2067}', '\u{200F}']),
            "{text}"
        );
        assert!(text.contains("emcA") && text.contains("Engineer"), "{text}");
    }

    let application = world
        .database
        .application_of("\u{202E}Sam\u{2066}", "", "sam@example.com")
        .await;
    let event = status_changed("e-2", application, "reviewing", "offer");
    let to = world.email_for(&event).await.to();
    assert_eq!(to, Mailbox::named("Sam", "sam@example.com"));
}
