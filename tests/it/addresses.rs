//! Recipients' addresses and names, as they stand in the database and as SES gets them.

use crate::support::event::{Record, batch, order_placed, status_changed};
use crate::support::mail::Mailbox;
use crate::support::world::World;

/// Sends to candidates of whom each has this name and address, and gives the recipients as SES got them.
async fn recipients_of<const N: usize>(candidates: [(&str, &str); N]) -> Vec<Mailbox> {
    let world = World::start().await;
    let mut recipients = Vec::new();
    for (number, (name, address)) in candidates.into_iter().enumerate() {
        let application = world.database.application_of(name, "", address).await;
        let event_id = format!("event-{number}");
        let event = status_changed(&event_id, application, "reviewing", "interview");
        recipients.push(world.email_for(&event).await.to());
    }
    recipients
}

#[tokio::test]
async fn sams_email_goes_to_sam() {
    let world = World::start().await;

    let event = status_changed("to-sam", 3, "reviewing", "interview");
    let email = world.email_for(&event).await;

    assert_eq!(email.to(), Mailbox::named("Sam", "sam@example.com"));
}

#[tokio::test]
async fn international_domains_go_out_as_punycode() {
    let recipients = recipients_of([
        ("Anna", "anna@müller.example"),
        ("Anna", "anna@MÜLLER.example"),
        ("Li", "li@例え.テスト"),
        ("Eve", "eve@mail.bücher.example"),
        ("Sam", "sam@xn--mller-kva.example"),
    ])
    .await;

    let addresses: Vec<&str> = recipients
        .iter()
        .map(|mailbox| mailbox.address.as_str())
        .collect();
    assert_eq!(
        addresses,
        [
            "anna@xn--mller-kva.example",
            "anna@xn--mller-kva.example",
            "li@xn--r8jz45g.xn--zckzah",
            "eve@mail.xn--bcher-kva.example",
            "sam@xn--mller-kva.example",
        ]
    );
}

#[tokio::test]
async fn a_display_name_arrives_as_that_one_name() {
    let names = [
        "Sam",
        "Mary O'Brien",
        "Müller, Anna",
        r#"Robert "Bob" Smith"#,
        "Sam (Engineering)",
        "Smith (Jr.), Robert",
        r"Back\slash",
        r#"Trailing backslash\"#,
        r#"A lone quote ""#,
        "Dot. Dot",
        "Team: Rust; Go",
        "a@b.example",
        "Eve <eve@example.net>",
        "eve@example.net, Sam",
        "李小龍",
        "Ștefan Țîțu",
        "ليلى حداد",
        "प्रिया शर्मा",
        "🦀 Ferris 👩‍👩‍👧‍👦",
        "Żółć, \"Gęśla\" (Jaźń)",
        "=?utf-8?q?evil?=",
        "=?utf-8?b?ZXZpbA==?= <eve@example.net>",
        "<b>Eve</b>",
        "A name of so many words that it cannot stand on one line of a header without being folded in some way or other",
        "Ein Name mit Ümläuten und so vielen Wörtern, dass er nicht in ein einziges kodiertes Wort von 75 Zeichen passt",
        "名前がとても長いので一つのエンコードされた単語に収まらないかもしれない人の名前はこのように続いていきます",
    ];
    let recipients = recipients_of(names.map(|name| (name, "someone@example.com"))).await;

    for (name, recipient) in names.into_iter().zip(recipients) {
        assert_eq!(recipient, Mailbox::named(name, "someone@example.com"));
    }
}

#[tokio::test]
async fn without_a_name_the_address_stands_alone() {
    let recipients = recipients_of([("", "sam@example.com"), ("  ", "eve@example.com")]).await;

    assert_eq!(
        recipients,
        [
            Mailbox::bare("sam@example.com"),
            Mailbox::bare("eve@example.com")
        ]
    );
}

#[tokio::test]
async fn line_breaks_and_control_characters_in_a_name_become_spaces() {
    let recipients = recipients_of([
        ("Sam\r\nBcc: eve@example.net", "sam@example.com"),
        ("Sam\nVimes", "sam@example.com"),
        ("Sam\tVimes", "sam@example.com"),
        ("Sam\u{7f}Vimes", "sam@example.com"),
        ("Sam\u{85}Vimes", "sam@example.com"),
        ("Sam\u{2028}Vimes", "sam@example.com"),
        ("Sam\u{b}Vimes", "sam@example.com"),
        ("Sam\u{1b}Vimes", "sam@example.com"),
    ])
    .await;

    assert_eq!(
        recipients[0],
        Mailbox::named("Sam Bcc: eve@example.net", "sam@example.com")
    );
    for recipient in &recipients[1..] {
        assert_eq!(*recipient, Mailbox::named("Sam Vimes", "sam@example.com"));
    }
}

#[tokio::test]
async fn an_address_that_ses_cannot_take_is_refused_before_the_send() {
    let addresses = [
        "jörg@example.com",
        "例え@example.com",
        "sam",
        "sam@",
        "@example.com",
        "@",
        "",
        " ",
        "sam@example.com, eve@example.net",
        "sam@example.com,eve@example.net",
        "sam@example.com;eve@example.net",
        "sam@example.com eve@example.net",
        "sam@eve@example.com",
        "sam@example.com\r\nBcc: eve@example.net",
        "sam@example.com\0x",
        "sam\t@example.com",
        "sam@exam\nple.com",
        "sam@exam ple.com",
        "sam vimes@example.com",
        "Eve <eve@example.net>",
        "sam@example.com <eve@example.net>",
        "sam@example..com",
        "sam@.example.com",
        "sam@-example.com",
        "sam@exam_ple.com\u{202e}",
        "undisclosed-recipients:;",
        "sam@example.com>",
        "(comment)sam@example.com",
    ];
    let world = World::start().await;
    for (number, address) in addresses.into_iter().enumerate() {
        // Postgres itself takes no NUL.
        let address = address.replace('\0', "\u{1}");
        let application = world.database.application_of("Sam", "", &address).await;
        let event_id = format!("event-{number}");
        let event = status_changed(&event_id, application, "reviewing", "interview");

        let answer = world
            .sandbox
            .invoke(batch([Record::new("m-1", &event)]))
            .await;

        assert_eq!(answer.failed, ["m-1"], "taken: {address:?}");
        let line = world.sandbox.logs.outcome_of(&event_id).await;
        assert_eq!(line.level(), "ERROR", "{address:?}: {}", line.text);
        assert!(
            line.text.contains("address"),
            "the reason isn't in {}",
            line.text
        );
    }
    world.ses.assert_requests(0);
    world.database.assert_claims(&[]).await;
}

#[tokio::test]
async fn an_address_that_was_mended_is_written_to_at_the_next_try() {
    let world = World::start().await;
    let application = world
        .database
        .application_of("Sam", "", "sam.example.com")
        .await;
    let event = status_changed("mended", application, "reviewing", "interview");

    world.sandbox.reports("m-1", &event).await;
    world
        .database
        .execute(
            "UPDATE auth_user SET email = 'mended@example.com' WHERE email = 'sam.example.com'",
        )
        .await;
    world.sandbox.handles("m-1", &event).await;

    assert_eq!(world.ses.only_email().to().address, "mended@example.com");
}

#[tokio::test]
async fn a_refused_address_never_touches_its_neighbours() {
    let world = World::start().await;
    let broken = world
        .database
        .application_of("Jörg", "", "jörg@example.com")
        .await;

    let records = [
        Record::new(
            "m-1",
            &status_changed("broken", broken, "reviewing", "interview"),
        ),
        Record::new("m-2", &status_changed("whole", 3, "reviewing", "interview")),
    ];
    world
        .sandbox
        .invoke(batch(records))
        .await
        .assert_failed(&["m-1"]);

    world.database.assert_claims(&[("whole", "sent")]).await;
}

#[tokio::test]
async fn unusual_but_valid_addresses_are_written_to() {
    let addresses = [
        "first.last+tag@example.com",
        "o'brien@example.com",
        "a!#$%&'*+/=?^_`{|}~-b@example.com",
        "x@sub.sub.example.co.uk",
        "1234567890@example.com",
        "SAM@Example.COM",
    ];
    let recipients = recipients_of(addresses.map(|address| ("Sam", address))).await;

    for (address, recipient) in addresses.into_iter().zip(recipients) {
        let to = recipient.address;
        assert!(to.eq_ignore_ascii_case(address), "{to}");
        let local_part = address.split_once('@').expect("it has one").0;
        assert!(
            to.starts_with(local_part),
            "the local part is the recipient's own: {to}"
        );
    }
}

#[tokio::test]
async fn an_order_is_confirmed_to_its_contact() {
    let world = World::start().await;
    let order = world
        .database
        .order_of(
            "billing@bücher.example",
            "Bücher & Söhne",
            "Job posting, 30 days",
        )
        .await;

    let email = world.email_for(&order_placed(order)).await;

    assert_eq!(email.to().address, "billing@xn--bcher-kva.example");
}
