//! A second message about the same event, which no visibility timeout keeps away from the crash of the first one's
//! worker.

use crate::moment::{AtSes, InTransaction, Moment, UnderLease};
use crate::stage::{EVENT, Ending, InDoubt, Invocation, Mode, Setting, Stage, Word};
use crate::support::gate::Gate;
use crate::support::ses::Reply;

const ACCEPTED_IN_TRANSACTION: Moment =
    Moment::InTransaction(InTransaction::AtSes(AtSes::Accepted));
const ACCEPTED_UNDER_LEASE: Moment = Moment::UnderLease(UnderLease::AtSes(AtSes::Accepted));

/// Two messages of one event, each at a worker. SES has accepted the email of the first, and the second waits for its
/// key.
async fn second_worker_waits(reply: &Gate) -> (Stage, Invocation, Invocation) {
    let mut stage = Stage::set(Setting::transaction(Word::InTime)).await;
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
    let mut stage = Stage::set(Setting::transaction(Word::InTime)).await;
    let _running = ACCEPTED_IN_TRANSACTION.reach(&mut stage).await;
    stage.crash().await;
    stage.database.transactions_over().await;

    stage.put(EVENT, 1);
    stage.play_on().await;

    assert_eq!(stage.ending().await.emails, 2);
}

/// What transaction mode can't offer: the row outlives the worker, and says that there was one.
#[tokio::test]
async fn under_a_lease_another_message_of_the_event_waits_for_ses_word_whatever_the_mode_of_its_worker()
 {
    for in_doubt in [InDoubt::Resend, InDoubt::Hold] {
        for next in [Mode::Lease, Mode::Transaction] {
            let setting = Setting::lease(in_doubt, Word::InTime).then(next);
            let mut stage = Stage::set(setting).await;
            let _running = ACCEPTED_UNDER_LEASE.reach(&mut stage).await;
            stage.crash().await;

            stage.put(EVENT, 1);
            stage.play_on().await;

            let ending = stage.ending().await;
            assert_eq!(ending, Ending::one_email("ses"), "{setting:?}");
        }
    }
}

#[tokio::test]
async fn under_a_lease_two_messages_of_an_event_are_two_emails_at_the_most_and_one_if_it_is_held() {
    for next in [Mode::Lease, Mode::Transaction] {
        for (in_doubt, must) in [
            (InDoubt::Resend, Ending::of(2, "worker")),
            (InDoubt::Hold, Ending::of(1, "held")),
        ] {
            let setting = Setting::lease(in_doubt, Word::Never).then(next);
            let mut stage = Stage::set(setting).await;
            let _running = ACCEPTED_UNDER_LEASE.reach(&mut stage).await;
            stage.crash().await;

            stage.put(EVENT, 1);
            stage.play_on().await;

            assert_eq!(stage.ending().await, must, "{setting:?}");
        }
    }
}
