//! `IN_DOUBT=hold`: a send in doubt is never made again by itself.

use crate::support::environment::Environment;
use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::logs::Line;
use crate::support::mode::Mode;
use crate::support::notification;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{assert_ending, ending, log_of, message, named, pass_seconds};

const HELD: (&str, &str, Option<&str>) = ("held", "ERROR", Some("held"));

/// A worker died with the email of event `held` accepted; lease and wait are over, and another one follows.
async fn world_with_an_overdue_send(dead_letters: bool) -> (World, Sandbox) {
    let world = World::start_with_sqs(|environment, sqs| {
        let environment = environment
            .with("CLAIM_MODE", Mode::Lease.name())
            .with("IN_DOUBT", "hold");
        if dead_letters {
            environment.with("DEAD_LETTER_QUEUE_URL", &sqs.queue_url("dead-letters"))
        } else {
            environment
        }
    })
    .await;
    let other = world.another_sandbox().await;
    world.ses.reply_next(Reply::accept().after(&Gate::closed()));
    let _lost = world.sandbox.begin(batch([message("m-1", "held")]));
    world.ses.received(1).await;
    world.sandbox.kill().await;
    pass_seconds(&world, 40 + 120).await;
    (world, other)
}

async fn ses_tells_of_the_email(world: &World) {
    let environment = Environment::feedback(&world.database.url(), &world.sqs);
    let feedback = Sandbox::start_function("feedback", &environment).await;
    let told = notification::of_email("send", &world.ses.emails()[0]);
    feedback
        .invoke(batch([notification::record("n-1", &told)]))
        .await
        .assert_none_failed();
}

fn counted(lines: &[Line], metric: &str) -> f64 {
    let metrics = lines.iter().filter(|line| line.is_metric());
    metrics.filter_map(|line| line.field(metric).as_f64()).sum()
}

#[tokio::test]
async fn it_becomes_unknown_sends_nothing_and_goes_to_the_dead_letter_queue_with_the_reason() {
    let (world, other) = world_with_an_overdue_send(true).await;

    other
        .invoke(batch([message("m-1", "held"), named("next")]))
        .await
        .assert_none_failed();

    world.ses.assert_requests(2);
    world
        .database
        .assert_claims(&[("held", "unknown"), ("next", "sent")])
        .await;
    assert_ending(&ending(&other, "m-1").await, HELD);
    let letters = world.sqs.messages();
    assert_eq!(letters.len(), 1);
    let attributes = &letters[0]["MessageAttributes"];
    assert_eq!(attributes["onemail_reason"]["StringValue"], "held");
    assert_eq!(attributes["onemail_event_id"]["StringValue"], "held");
    let log = log_of(&other).await;
    assert_eq!(counted(&log, "Held"), 1.0);
    let errors = log.iter().filter(|line| line.level() == "ERROR");
    assert_eq!(errors.count(), 1, "ERROR lines");
}

#[tokio::test]
async fn without_a_dead_letter_queue_it_is_reported_each_time() {
    let (world, other) = world_with_an_overdue_send(false).await;

    for message_id in ["m-1", "m-2"] {
        other
            .invoke(batch([message(message_id, "held")]))
            .await
            .assert_failed(&[message_id]);
        assert_ending(&ending(&other, message_id).await, HELD);
        // The redrive policy moves it: nothing is gained by waiting.
        assert!(world.sqs.delays_of(message_id).is_empty());
    }

    world.ses.assert_requests(1);
    world.database.assert_claims(&[("held", "unknown")]).await;
    assert_eq!(counted(&log_of(&other).await, "Held"), 2.0);
}

#[tokio::test]
async fn ses_word_that_comes_late_settles_it_as_sent() {
    let (world, other) = world_with_an_overdue_send(true).await;
    other
        .invoke(batch([message("m-1", "held")]))
        .await
        .assert_none_failed();

    ses_tells_of_the_email(&world).await;

    let claim = world.database.claim("held").await.expect("a claim");
    assert_eq!(
        (claim.outcome.as_str(), claim.settled_by.as_str()),
        ("sent", "ses")
    );
    assert_eq!(
        claim.ses_message_id,
        Some(world.ses.only_email().message_id)
    );
    other
        .invoke(batch([message("m-2", "held")]))
        .await
        .assert_none_failed();
    assert_ending(&ending(&other, "m-2").await, ("duplicate", "INFO", None));
}

#[tokio::test]
async fn an_operator_who_says_that_it_was_sent_makes_the_redriven_message_a_duplicate() {
    let (world, other) = world_with_an_overdue_send(true).await;
    other
        .invoke(batch([message("m-1", "held")]))
        .await
        .assert_none_failed();

    let sent = "UPDATE processed_events SET outcome = 'sent', settled_by = 'operator' \
                WHERE event_id = 'held' AND outcome = 'unknown'";
    world.database.execute(sent).await;
    other
        .invoke(batch([message("m-2", "held")]))
        .await
        .assert_none_failed();

    assert_ending(&ending(&other, "m-2").await, ("duplicate", "INFO", None));
    world.ses.assert_requests(1);
}

#[tokio::test]
async fn an_operator_who_deletes_the_row_has_the_redriven_message_sent() {
    let (world, other) = world_with_an_overdue_send(true).await;
    other
        .invoke(batch([message("m-1", "held")]))
        .await
        .assert_none_failed();

    let unsent = "DELETE FROM processed_events WHERE event_id = 'held' AND outcome = 'unknown'";
    world.database.execute(unsent).await;
    other
        .invoke(batch([message("m-2", "held")]))
        .await
        .assert_none_failed();

    world.ses.assert_emails(2);
    world.database.assert_claims(&[("held", "sent")]).await;
}

/// A worker that everybody took for dead, and that SES answers after all.
#[tokio::test]
async fn a_worker_that_comes_back_after_its_send_was_held_settles_it() {
    let world = super::start_with(|environment| environment.with("IN_DOUBT", "hold")).await;
    let other = world.another_sandbox().await;
    let gate = Gate::closed();
    world.ses.reply_next(Reply::accept().after(&gate));
    let running = world.sandbox.begin(batch([message("m-1", "held")]));
    world.ses.received(1).await;
    pass_seconds(&world, 40 + 120).await;
    other
        .invoke(batch([message("m-2", "held")]))
        .await
        .assert_failed(&["m-2"]);
    world.database.assert_claims(&[("held", "unknown")]).await;
    gate.open();

    running.answer().await.assert_none_failed();

    world.database.assert_claims(&[("held", "sent")]).await;
    world.ses.assert_requests(1);
}
