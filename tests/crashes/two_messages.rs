//! A second message about the same event, which no visibility timeout keeps away from the crash of the first one's
//! worker.

use crate::moment::Moment;
use crate::stage::{EVENT, Invocation, Stage, Word};
use crate::support::gate::Gate;
use crate::support::ses::Reply;

/// Two messages of one event, each at a worker. SES has accepted the email of the first, and the second waits for its
/// key.
async fn second_worker_waits(reply: &Gate) -> (Stage, Invocation, Invocation) {
    let mut stage = Stage::set(Word::InTime).await;
    stage.ses.reply_next(Reply::accept().after(reply));
    let first = stage.begin().await;
    stage.ses.received(1).await;
    stage.put(EVENT, 0);
    let second = stage.begin_at_another_worker().await;
    stage.database.sessions_blocked(1).await;
    (stage, first, second)
}

/// It gets the key at the moment of the crash, long before any visibility timeout, and can't know why: Postgres has
/// rolled back, as it does when a send has failed. This is the gap of `docs/guarantee.md`, and SES's word tells of it.
#[tokio::test]
async fn a_crash_while_another_worker_waits_for_the_same_event_is_a_second_email_that_is_told_of() {
    let (mut stage, _first, second) = second_worker_waits(&Gate::closed()).await;

    stage.crash().await;
    stage.end(second).await;
    stage.play_on().await;

    // Which sees that the second one was told of.
    assert_eq!(stage.ending().await.emails, 2);
}

/// A failover, say, in mid-send: the first worker lives, and its email leaves; but its claim is gone.
#[tokio::test]
async fn a_session_that_postgres_ends_while_another_worker_waits_is_a_second_email_that_is_told_of()
{
    let reply = Gate::closed();
    let (mut stage, first, second) = second_worker_waits(&reply).await;

    stage.database.end_open_transactions().await;
    stage.end(second).await;
    reply.open();
    stage.end(first).await;
    stage.play_on().await;

    // Which sees that the second one was told of.
    assert_eq!(stage.ending().await.emails, 2);
}

/// It is no redelivery, so no visibility timeout keeps it back until SES has told.
#[tokio::test]
async fn another_message_of_the_event_between_the_crash_and_ses_word_is_a_second_email_that_is_told_of()
 {
    let mut stage = Stage::set(Word::InTime).await;
    let _running = Moment::Accepted.reach(&mut stage).await;
    stage.crash().await;
    stage.database.transactions_over().await;

    stage.put(EVENT, 1);
    stage.play_on().await;

    assert_eq!(stage.ending().await.emails, 2);
}
