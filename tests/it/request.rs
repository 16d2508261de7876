//! The request to SES: what other programs rely on in it.

use crate::support::environment::MAIL_FROM;
use crate::support::event::{Record, batch, interview, order_placed};
use crate::support::mail::{Mailbox, SendEmail};
use crate::support::world::World;

async fn only_email(world: &World, event: &serde_json::Value) -> SendEmail {
    world
        .sandbox
        .invoke(batch([Record::new("m-1", event)]))
        .await
        .assert_none_failed();
    world.ses.only_email()
}

#[tokio::test]
async fn an_email_is_simple_content_in_html_and_text_from_the_configured_sender() {
    let world = World::start().await;

    let email = only_email(&world, &interview("simple")).await;

    assert_eq!(
        email.from(),
        Mailbox::named("Job Board", "no-reply@example.com")
    );
    assert_eq!(email.body["FromEmailAddress"], MAIL_FROM);
    assert_eq!(email.reply_to(), None);
    assert_eq!(email.configuration_set(), None);
    assert!(email.body["Content"]["Raw"].is_null() && email.body["Content"]["Template"].is_null());
    assert!(!email.subject().is_empty());
    assert!(
        email
            .html()
            .trim_start()
            .to_lowercase()
            .starts_with("<!doctype html"),
        "{}",
        email.html()
    );
    assert!(!email.text().contains('<'), "{}", email.text());
}

#[tokio::test]
async fn the_headers_of_the_folder_are_added() {
    let world = World::start().await;

    let email = only_email(&world, &interview("headers")).await;

    assert_eq!(email.headers(), [("Auto-Submitted", "auto-generated")]);
}

#[tokio::test]
async fn the_tags_tell_the_events_type_and_id() {
    let world = World::start().await;

    let email = only_email(&world, &interview("23e48c51-5f05_A")).await;

    assert_eq!(email.tag("event_type"), Some("application-status_changed"));
    assert_eq!(email.tag("event_id"), Some("23e48c51-5f05_A"));
    assert_eq!(email.tag("event_id_b64"), None);
}

#[tokio::test]
async fn a_key_that_a_tag_cannot_hold_is_encoded() {
    let world = World::start().await;

    let email = only_email(&world, &interview("orders:2026/001?>")).await;

    assert_eq!(email.tag("event_id"), None);
    assert_eq!(email.tag("event_id_b64"), Some("b3JkZXJzOjIwMjYvMDAxPz4"));
    assert_eq!(email.event_id(), "orders:2026/001?>");
}

#[tokio::test]
async fn the_tag_of_a_derived_key_is_the_key() {
    let world = World::start().await;

    let email = only_email(&world, &order_placed(1001)).await;

    assert_eq!(email.tag("event_type"), Some("order-placed"));
    assert_eq!(email.tag("event_id"), Some("order-1001"));
}

#[tokio::test]
async fn the_configuration_set_and_the_address_for_answers_are_those_that_are_configured() {
    let world = World::start_with(|environment| {
        environment
            .with("SES_CONFIGURATION_SET", "job-board_events")
            .with(
                "MAIL_REPLY_TO",
                "\"Support, Job Board\" <support@bücher.example>",
            )
    })
    .await;

    let email = only_email(&world, &interview("configured")).await;

    assert_eq!(email.configuration_set(), Some("job-board_events"));
    assert_eq!(
        email.reply_to(),
        Some(Mailbox::named(
            "Support, Job Board",
            "support@xn--bcher-kva.example"
        ))
    );
}

#[tokio::test]
async fn the_senders_name_may_be_of_any_script() {
    let world = World::start_with(|environment| {
        environment.with("MAIL_FROM", "求人板 <no-reply@example.com>")
    })
    .await;

    let email = only_email(&world, &interview("from")).await;

    assert_eq!(
        email.from(),
        Mailbox::named("求人板", "no-reply@example.com")
    );
}

#[tokio::test]
async fn a_sender_without_a_name_is_its_address() {
    let world =
        World::start_with(|environment| environment.with("MAIL_FROM", "no-reply@example.com"))
            .await;

    let email = only_email(&world, &interview("from")).await;

    assert_eq!(email.from(), Mailbox::bare("no-reply@example.com"));
}
