//! No value from an event or from the database can add a header, a recipient or markup.

use crate::support::event::{Record, batch, interview, order_placed, status_changed};
use crate::support::mail::SendEmail;
use crate::support::world::World;

const SCRIPT: &str = "<script>alert('x')</script> & \"more\"";

impl SendEmail {
    /// Asserts that the text is in the email only where and as a text may be: escaped in HTML, literal in plain text.
    #[track_caller]
    fn assert_shows_as_text(&self, markup: &str) {
        assert!(
            !self.html().contains(markup),
            "markup got into the HTML: {}",
            self.html()
        );
        assert!(
            self.html().contains("&lt;"),
            "nothing is escaped in the HTML: {}",
            self.html()
        );
        assert!(
            self.text().contains(markup),
            "the text is not literal: {}",
            self.text()
        );
        assert!(
            !self.text().contains("&lt;") && !self.text().contains("&amp;"),
            "escaped text: {}",
            self.text()
        );
    }

    /// Asserts that the headers are those that our own files name, and each on one line.
    #[track_caller]
    fn assert_no_foreign_header(&self) {
        assert!(
            !self
                .subject()
                .contains(|character: char| character.is_control()),
            "{:?}",
            self.subject()
        );
        for (name, value) in self.headers() {
            assert!(
                !name.eq_ignore_ascii_case("bcc") && !name.eq_ignore_ascii_case("x-evil"),
                "{name}"
            );
            assert!(!value.contains(['\r', '\n']), "{name}: {value:?}");
        }
    }
}

#[tokio::test]
async fn markup_in_a_name_is_escaped_in_html_and_literal_in_text() {
    let world = World::start().await;
    let application = world
        .database
        .application_of("<b>Eve</b>", "", "eve@example.com")
        .await;

    let event = status_changed("markup", application, "reviewing", "interview");
    let email = world.email_for(&event).await;

    email.assert_shows_as_text("<b>Eve</b>");
}

#[tokio::test]
async fn markup_in_a_job_title_or_company_is_escaped_in_html_and_literal_in_text() {
    let world = World::start().await;
    let with_title = world.database.application_for("<i>Chef</i>", "Acme").await;
    let with_company = world.database.application_for("Chef", "<i>Acme</i>").await;

    for (number, (application, markup)) in
        [(with_title, "<i>Chef</i>"), (with_company, "<i>Acme</i>")]
            .into_iter()
            .enumerate()
    {
        let event_id = format!("event-{number}");
        let event = status_changed(&event_id, application, "reviewing", "offer");
        let email = world.email_for(&event).await;
        email.assert_shows_as_text(markup);
    }
}

#[tokio::test]
async fn markup_in_an_event_is_escaped_in_html_and_literal_in_text() {
    let world = World::start().await;

    let event = status_changed("markup", 3, "reviewing", SCRIPT);
    let email = world.email_for(&event).await;

    assert!(!email.html().contains("<script"), "{}", email.html());
    assert!(!email.text().contains("&lt;"), "{}", email.text());
}

#[tokio::test]
async fn markup_in_an_order_is_escaped_in_html_and_literal_in_text() {
    let world = World::start().await;
    let order = world
        .database
        .order_of("billing@example.com", "Acme", "<u>Posting</u>")
        .await;

    let email = world.email_for(&order_placed(order)).await;

    email.assert_shows_as_text("<u>Posting</u>");
}

#[tokio::test]
async fn line_breaks_from_the_database_add_no_header_and_no_recipient() {
    let world = World::start().await;
    let title = "Chef\r\nBcc: eve@example.net\r\nX-Evil: yes\r\n\r\n<h1>Hello</h1>";
    let application = world
        .database
        .application_for(title, "Acme\nBcc: eve@example.net")
        .await;

    let event = status_changed("injected", application, "reviewing", "interview");
    let email = world.email_for(&event).await;

    email.assert_no_foreign_header();
    assert_eq!(email.to().address, "sam@example.com");
}

#[tokio::test]
async fn line_breaks_from_an_event_add_no_header_and_no_recipient() {
    let world = World::start().await;
    let status = "offer\r\nBcc: eve@example.net\u{2028}X-Evil: yes";

    let event = status_changed("injected", 3, "reviewing", status);
    let email = world.email_for(&event).await;

    email.assert_no_foreign_header();
    assert_eq!(email.to().address, "sam@example.com");
}

#[tokio::test]
async fn template_syntax_in_values_is_only_text() {
    let world = World::start().await;
    let application = world
        .database
        .application_for("{{ to_address }}", "{% include 'layout.html' %}")
        .await;

    let event = status_changed("syntax", application, "reviewing", "{{ 7 * 191 }}");
    let email = world.email_for(&event).await;

    assert!(
        email.text().contains("{{ to_address }}"),
        "{}",
        email.text()
    );
    for part in [email.text(), email.html(), email.subject()] {
        assert!(
            !part.contains("1337") && !part.contains("sam@example.com"),
            "{part}"
        );
    }
}

#[tokio::test]
async fn subjects_and_texts_are_not_escaped() {
    let world = World::start().await;
    let application = world
        .database
        .application_for("Head of R&D", "O'Hara's \"Best\"")
        .await;

    let event = status_changed("plain", application, "reviewing", "interview");
    let email = world.email_for(&event).await;

    assert!(
        email.text().contains("Head of R&D") && email.text().contains("O'Hara's \"Best\""),
        "{}",
        email.text()
    );
    assert!(email.html().contains("Head of R&amp;D"), "{}", email.html());
    for part in [email.text(), email.subject()] {
        assert!(
            !part.contains("&amp;") && !part.contains("&#") && !part.contains("&quot;"),
            "{part}"
        );
    }
}

#[tokio::test]
async fn each_status_has_wording_of_its_own() {
    let world = World::start().await;
    let statuses = [
        "reviewing",
        "interview",
        "offer",
        "rejected",
        "hired",
        "on_hold",
    ];

    let records = statuses.map(|status| {
        Record::new(
            &format!("m-{status}"),
            &status_changed(status, 3, "submitted", status),
        )
    });
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    let mut texts: Vec<String> = world
        .ses
        .emails()
        .iter()
        .map(|email| email.text().to_owned())
        .collect();
    for text in &texts {
        assert!(
            text.contains("Sam") && text.contains("Backend Engineer") && text.contains("Acme"),
            "{text}"
        );
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), statuses.len());
}

#[tokio::test]
async fn values_of_any_script_arrive_unharmed() {
    let world = World::start().await;
    let application = world
        .database
        .application_for("カスタマーサポート 🦀", "Großmann, Weiß & Partner")
        .await;

    let event = status_changed("script", application, "reviewing", "interview");
    let email = world.email_for(&event).await;

    for part in [email.text(), email.html()] {
        assert!(
            part.contains("カスタマーサポート 🦀") && part.contains("Großmann, Weiß"),
            "{part}"
        );
    }
}

#[tokio::test]
async fn the_email_carries_nothing_that_calls_home() {
    let world = World::start().await;

    let records = [
        Record::new("m-1", &interview("quiet")),
        Record::new("m-2", &order_placed(1001)),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_none_failed();

    for email in world.ses.emails() {
        for outside in ["<img", "<script", "src=", "url(", "@import"] {
            assert!(
                !email.html().contains(outside),
                "{outside} in {}",
                email.html()
            );
        }
    }
}
