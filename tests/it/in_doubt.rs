//! After a send of unknown outcome in transaction mode: the key is free, but SES is given the time to say what became
//! of it.

use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::notification;
use crate::support::proxy::Then;
use crate::support::ses::Reply;
use crate::support::world::World;

/// SES accepted the email for message `m-1` of the event `unclear`, and its reply was lost.
async fn world_in_doubt(in_doubt_wait: &str) -> World {
    let world = World::start_with(|environment| {
        environment
            .with("CLAIM_MODE", Mode::Transaction.name())
            .with("IN_DOUBT_WAIT", in_doubt_wait)
    })
    .await;
    world.ses.reply_next(Reply::accept_without_reply());
    world.sandbox.reports("m-1", &interview("unclear")).await;
    world.ses.assert_emails(1);
    world.database.assert_claims(&[]).await;
    world
}

/// As if so much time had passed.
async fn pass_seconds(world: &World, seconds: u32) {
    let earlier = format!(
        "UPDATE sends_in_doubt SET in_doubt_until = in_doubt_until - interval '{seconds} seconds'"
    );
    world.database.execute(&earlier).await;
}

#[tokio::test]
async fn another_message_of_the_same_event_waits_and_sends_nothing() {
    let world = world_in_doubt("300").await;

    world.sandbox.reports("m-2", &interview("unclear")).await;

    world.ses.assert_requests(1);
    world.database.assert_claims(&[]).await;
    let line = world.sandbox.logs.outcome_of_message("m-2").await;
    assert_eq!((line.outcome(), line.level()), ("released", "WARN"));
    assert_eq!(line.field("reason"), "in_doubt");
    let delays = world.sqs.delays_of("m-2");
    assert!(
        delays.len() == 1 && (290..=300).contains(&delays[0]),
        "{delays:?} seconds"
    );
}

#[tokio::test]
async fn a_message_that_waits_is_kept_back_for_all_that_is_left_of_the_wait() {
    let world = world_in_doubt("300").await;
    pass_seconds(&world, 100).await;

    world.sandbox.reports("m-2", &interview("unclear")).await;

    let left =
        "SELECT extract(epoch FROM in_doubt_until - clock_timestamp())::float8 FROM sends_in_doubt";
    let left: f64 = world.database.query(left, &[]).await[0].get(0);
    let delay = world.sqs.delays_of("m-2")[0];
    assert!(
        delay as f64 >= left && delay <= 200,
        "{delay} s, with {left} s left"
    );
}

/// SQS has kept it back meanwhile.
#[tokio::test]
async fn the_message_itself_is_sent_when_it_comes_back() {
    let world = world_in_doubt("300").await;

    world.sandbox.handles("m-1", &interview("unclear")).await;

    world.ses.assert_requests(2);
    world.database.assert_claims(&[("unclear", "sent")]).await;
    // What is settled is in doubt no longer.
    world.sandbox.handles("m-2", &interview("unclear")).await;
    world.ses.assert_requests(2);
}

#[tokio::test]
async fn after_the_wait_any_message_of_the_event_sends() {
    let world = world_in_doubt("300").await;
    pass_seconds(&world, 300).await;

    world.sandbox.handles("m-2", &interview("unclear")).await;

    world.ses.assert_requests(2);
    world.database.assert_claims(&[("unclear", "sent")]).await;
}

#[tokio::test]
async fn without_a_wait_any_message_of_the_event_sends_at_once() {
    let world = world_in_doubt("0").await;

    world.sandbox.handles("m-2", &interview("unclear")).await;

    world.ses.assert_requests(2);
}

#[tokio::test]
async fn ses_word_in_the_meantime_makes_every_message_a_duplicate() {
    let world = world_in_doubt("300").await;
    let environment = Environment::feedback(&world.database.url(), &world.sqs);
    let feedback = Sandbox::start_function("feedback", &environment).await;
    let email = world.ses.only_email();

    let told = notification::of_email("send", &email);
    feedback
        .invoke(batch([notification::record("n-1", &told)]))
        .await
        .assert_none_failed();

    let event = interview("unclear");
    for message_id in ["m-2", "m-1", "m-3"] {
        world.sandbox.handles(message_id, &event).await;
        let line = world.sandbox.logs.outcome_of_message(message_id).await;
        if message_id != "m-1" {
            assert_eq!(line.outcome(), "duplicate", "{message_id}");
        }
    }
    world.ses.assert_requests(1);
    let claim = world.database.claim("unclear").await.expect("a claim");
    assert_eq!(claim.settled_by, "ses");
    assert_eq!(claim.ses_message_id, Some(email.message_id));
}

#[tokio::test]
async fn a_second_message_of_the_same_batch_stays_behind_the_first() {
    let world = World::start().await;
    world.ses.reply_next(Reply::accept_without_reply());
    let event = interview("unclear");

    world
        .sandbox
        .invoke(batch([
            Record::new("m-1", &event),
            Record::new("m-2", &event),
        ]))
        .await
        .assert_failed(&["m-1", "m-2"]);

    world.ses.assert_requests(1);
}

#[tokio::test]
async fn a_doubt_about_one_event_holds_up_no_other() {
    let world = world_in_doubt("300").await;

    world.sandbox.handles("m-2", &interview("clear")).await;

    world.database.assert_claims(&[("clear", "sent")]).await;
}

/// The second try failed for certain, which says nothing of the first.
#[tokio::test]
async fn a_doubt_outlasts_a_retry_that_was_not_sent() {
    let world = world_in_doubt("300").await;
    world.ses.reply_next(Reply::refuse(
        400,
        "SendingPausedException",
        "Email sending is disabled.",
    ));

    let event = interview("unclear");
    for message_id in ["m-1", "m-2"] {
        world.sandbox.reports(message_id, &event).await;
    }

    world.ses.assert_requests(2);
    world.ses.assert_emails(1);
}

#[tokio::test]
async fn a_doubt_of_another_message_prolongs_the_wait_and_never_shortens_it() {
    let world = world_in_doubt("300").await;
    // A worker that was deployed with a shorter wait.
    let environment = world.environment.clone().with("IN_DOUBT_WAIT", "1");
    let hasty = Sandbox::start(&environment).await;
    world.ses.reply_next(Reply::accept_without_reply());
    hasty.reports("m-1", &interview("unclear")).await;

    pass_seconds(&world, 30).await;
    world.sandbox.reports("m-2", &interview("unclear")).await;
    world.ses.assert_requests(2);
}

/// SES's reply and the connection to Postgres are lost together, as in one fault of the network.
#[tokio::test]
async fn a_doubt_that_could_not_be_marked_is_marked_on_another_connection() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Transaction).await;
    world.ses.reply_next(Reply::accept_without_reply());
    let cut = proxy.at("sends_in_doubt AS mark", Then::Cut);

    world.sandbox.reports("m-1", &interview("unclear")).await;
    cut.happened().await;
    world.sandbox.reports("m-2", &interview("unclear")).await;

    world.ses.assert_requests(1);
    let line = world.sandbox.logs.outcome_of_message("m-2").await;
    assert_eq!(line.field("reason"), "in_doubt");
}
