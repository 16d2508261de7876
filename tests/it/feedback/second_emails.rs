//! A second email for one event: how the guarantee is measured in production.

use serde_json::json;

use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::mode::Mode;
use crate::support::notification::{self, record, send};
use crate::support::proxy::Then;
use crate::support::ses::Reply;

use super::{Listener, counted, kinds, with_outcome};

#[tokio::test]
async fn a_second_message_id_for_a_key_is_told_once_as_a_second_email() {
    let (world, listener) = Listener::with_worker().await;
    world
        .sandbox
        .invoke(batch([Record::new("m-1", &interview("twice"))]))
        .await
        .assert_none_failed();
    let claim = world.database.claim("twice").await;
    let first = notification::of_email("send", &world.ses.only_email());
    let second = send("twice", "another-email");

    listener.hears(&first).await;
    for message_id in ["n-2", "n-3"] {
        listener.hears_all([record(message_id, &second)]).await;
    }
    listener.hears(&first).await;

    assert_eq!(
        world.database.claim("twice").await,
        claim,
        "the first email's claim stands"
    );
    let told = listener.database.told().await;
    assert_eq!(kinds(&told), ["send", "send"]);
    let lines = listener.log().await;
    let second_emails = with_outcome(&lines, "second_email");
    assert_eq!(second_emails.len(), 1, "lines that tell of a second email");
    assert_eq!(second_emails[0].level(), "ERROR");
    assert_eq!(second_emails[0].field("event_id"), "twice");
    assert_eq!(second_emails[0].field("ses_message_id"), "another-email");
    let errors = lines.iter().filter(|line| line.level() == "ERROR");
    assert_eq!(errors.count(), 1, "ERROR lines");
    assert_eq!(counted(&lines, "SecondEmails"), 1);
}

/// SES took the first email and its answer was lost; its delivery is told while the second is underway.
#[tokio::test]
async fn a_second_email_is_told_though_the_first_ones_delivery_settles_its_row_in_mid_send() {
    let (world, listener) = Listener::with_worker_in(Mode::Lease).await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept_without_reply());
    world.sandbox.reports("m-1", &interview("twice")).await;
    let pass = "UPDATE processed_events SET lease_until = lease_until - interval '1 day'";
    world.database.execute(pass).await;
    world.ses.reply_next(Reply::accept().after(&gate));
    let running = world
        .sandbox
        .begin(batch([Record::new("m-1", &interview("twice"))]));
    let emails = world.ses.received(2).await;
    let told = |kind, email| notification::of_email(kind, email);

    listener.hears(&told("delivery", &emails[0])).await;
    gate.open();
    running.answer().await.assert_none_failed();
    for kind in ["send", "delivery"] {
        for email in emails.iter().rev() {
            listener.hears(&told(kind, email)).await;
        }
    }

    let claim = world.database.claim("twice").await.expect("a claim");
    assert_eq!(
        (claim.settled_by.as_str(), claim.ses_message_id.as_ref()),
        ("ses", Some(&emails[0].message_id))
    );
    let lines = listener.log().await;
    let second_emails = with_outcome(&lines, "second_email");
    assert_eq!(second_emails.len(), 1);
    assert_eq!(
        second_emails[0].field("ses_message_id"),
        emails[1].message_id.as_str()
    );
    assert_eq!(counted(&lines, "SettledBySes"), 1);
}

#[tokio::test]
async fn two_sends_of_one_event_in_one_batch_are_one_claim_and_one_second_email() {
    let listener = Listener::start().await;

    listener
        .hears_all([
            record("n-1", &send("twice", "id-1")),
            record("n-2", &send("twice", "id-2")),
        ])
        .await;

    assert_eq!(listener.database.claims().await.len(), 1);
    let lines = listener.log().await;
    assert_eq!(counted(&lines, "SettledBySes"), 1);
    assert_eq!(counted(&lines, "SecondEmails"), 1);
}

/// This is how the guarantee is measured: what is lost here is a second email of which nobody learns.
#[tokio::test]
async fn a_second_email_is_told_also_when_the_answer_to_its_commit_was_lost() {
    let (listener, proxy) = Listener::start_with_proxy().await;
    listener.hears(&send("twice", "id-1")).await;

    let lost = proxy.at("COMMIT", Then::CutReplies);
    listener
        .hears_all([record("n-2", &send("twice", "id-2"))])
        .await;
    lost.happened().await;

    let lines = listener.log().await;
    assert_eq!(with_outcome(&lines, "second_email").len(), 1);
    assert_eq!(counted(&lines, "SecondEmails"), 1);
}

/// What it recorded is committed, and was not told: its redelivery must tell.
#[tokio::test]
async fn a_second_email_whose_feedback_died_before_it_told_is_told_when_it_comes_again() {
    let (listener, proxy) = Listener::start_with_proxy().await;
    listener.hears(&send("twice", "id-1")).await;
    let second = || record("n-2", &send("twice", "id-2"));
    let committed = proxy.at("COMMIT", Then::SwallowReplies);
    let _running = listener.sandbox.begin(batch([second()]));
    committed.happened().await;
    listener.sandbox.kill().await;
    listener.database.transactions_over().await;
    proxy.forget_rules();

    let url = listener.database.url();
    let again = Listener::on(listener.database, &url).await;
    again
        .hears_all([second().with("attributes", json!({ "ApproximateReceiveCount": "2" }))])
        .await;

    let lines = again.log().await;
    let told = with_outcome(&lines, "second_email");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].level(), "ERROR");
    assert_eq!(counted(&lines, "SecondEmails"), 1);
}
