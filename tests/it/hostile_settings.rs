//! The words of an email don't depend on the settings of the database or of the role.

use crate::support::event::{order_placed, status_changed};
use crate::support::mail::SendEmail;
use crate::support::world::World;

const SETTINGS: [&str; 8] = [
    "standard_conforming_strings = off",
    "DateStyle = 'SQL, DMY'",
    "IntervalStyle = 'sql_standard'",
    "TimeZone = 'Asia/Kathmandu'",
    "bytea_output = 'escape'",
    "extra_float_digits = -15",
    "client_encoding = 'LATIN1'",
    "backslash_quote = off",
];

/// What is read of it: whom it is for, and its words.
fn words(email: &SendEmail) -> (Option<String>, String, String) {
    (
        email.to().name,
        email.subject().to_owned(),
        email.text().to_owned(),
    )
}

#[tokio::test]
async fn each_email_has_the_same_words_under_any_setting() {
    let world = World::start().await;
    let database = &world.database;
    database
        .execute(
            "UPDATE auth_user SET first_name = 'Jess', last_name = 'Ross' WHERE id = 5; \
             UPDATE jobs_job SET title = 'Sales  Assistant 李' WHERE id = 51; \
             UPDATE billing_order SET currency = 'inr', total_cents = 123456789 WHERE id = 1001",
        )
        .await;
    let application = database
        .application_of("Jess", "Ross", "jess@example.com")
        .await;
    let usual = [
        words(
            &world
                .email_for(&status_changed("a-1", application, "reviewing", "offer"))
                .await,
        ),
        words(&world.email_for(&order_placed(1001)).await),
    ];
    assert_eq!(usual[0].0.as_deref(), Some("Jess Ross"));
    assert!(usual[0].2.contains("Sales Assistant 李"), "{}", usual[0].2);
    assert!(usual[1].2.contains("INR 1,234,567.89"), "{}", usual[1].2);

    for (number, setting) in SETTINGS.into_iter().enumerate() {
        let name = database.name();
        database
            .execute(&format!(
                "DELETE FROM processed_events; ALTER ROLE {name} RESET ALL; \
                 ALTER ROLE {name} SET search_path = {name}; ALTER ROLE {name} SET {setting}"
            ))
            .await;
        database.end_other_sessions().await;
        let id = format!("b-{number}");
        let hostile = [
            words(
                &world
                    .email_for(&status_changed(&id, application, "reviewing", "offer"))
                    .await,
            ),
            words(&world.email_for(&order_placed(1001)).await),
        ];
        assert_eq!(hostile, usual, "under {setting}");
    }
}
