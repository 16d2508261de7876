//! The first way: user and password in `DATABASE_URL`.

use crate::support::database::Database;
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::lambda::Sandbox;
use crate::support::ses::Ses;

/// Each character that means something in a URL or to libpq, and two that need more than one byte.
const PASSWORD: &str = "p@ss#w/rd%25?&=: +'\\[]\"é€";

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn a_percent_encoded_user_and_password_are_what_postgres_gets() {
    let database = Database::create().await;
    database.set_password(PASSWORD).await;
    let user = encoded(database.name());

    for (password, is_right) in [(PASSWORD, true), ("hunter2", false)] {
        let login = format!("{user}:{}@", encoded(password));
        let url = database
            .url()
            .replace(&format!("{}@", database.name()), &login);
        let sandbox = Sandbox::start(&Environment::notify(&url, &Ses::start().await)).await;
        let answer = sandbox
            .invoke(batch([Record::new("m-1", &interview("encoded"))]))
            .await;
        if is_right {
            answer.assert_none_failed();
        } else {
            answer.assert_failed(&["m-1"]);
            let line = sandbox.logs.outcome_of("encoded").await;
            assert_eq!(line.field("code"), "28P01");
            assert_eq!(line.field("reason"), "database_setup");
        }
        assert!(!sandbox.logs.text().contains(password));
    }
}
