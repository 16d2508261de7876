//! A row that can't be written at once is not given up, and no other row waits for it.

use std::time::Duration;

use crate::support::event::batch;
use crate::support::gate::Gate;
use crate::support::mode::Mode;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::named;

fn paused() -> Reply {
    Reply::refuse(400, "SendingPausedException", "Email sending is disabled.")
}

/// An operator in an open session, say.
#[tokio::test]
async fn a_row_that_is_locked_keeps_no_later_result_of_the_batch_from_being_written() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    let [first, second] = [Gate::closed(), Gate::closed()];
    let accept = Reply::accept();
    world
        .ses
        .reply_to_event("locked", accept.clone().after(&first));
    world.ses.reply_to_event("later", accept.after(&second));
    world.ses.reply_to_event("paused", paused().after(&second));
    let running = world
        .sandbox
        .begin(batch(["locked", "later", "paused"].map(named)));
    world.ses.received(3).await;
    let neighbour = world.database.neighbour().await;
    let lock = "BEGIN; SELECT FROM processed_events WHERE event_id = 'locked' FOR UPDATE";
    neighbour.batch_execute(lock).await.expect("it is free");

    first.open();
    proxy.seen(1, Mode::Lease.settlement()).await;
    second.open();

    let written =
        "SELECT count(*) FROM processed_events WHERE event_id = 'later' AND outcome = 'sent'";
    world
        .database
        .until("the later email's row", written, 1)
        .await;
    let rows = [("later", "sent"), ("locked", "sending")];
    world.database.assert_claims(&rows).await;
    neighbour.batch_execute("ROLLBACK").await.expect("it can");
    running.answer().await.assert_failed(&["paused"]);
    let rows = [("later", "sent"), ("locked", "sent")];
    world.database.assert_claims(&rows).await;
}

/// Two of an operator's, of whom one goes home.
#[tokio::test]
async fn a_row_that_stays_locked_until_the_deadline_says_nothing_of_one_that_was_free_before() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    let gate = Gate::closed();
    world.ses.reply_always(Reply::accept().after(&gate));
    let running = world
        .sandbox
        .begin_within(batch(["stays", "freed"].map(named)), Duration::from_secs(9));
    world.ses.received(2).await;
    let [stays, freed] = [
        world.database.neighbour().await,
        world.database.neighbour().await,
    ];
    for (neighbour, key) in [(&stays, "stays"), (&freed, "freed")] {
        let lock =
            format!("BEGIN; SELECT FROM processed_events WHERE event_id = '{key}' FOR UPDATE");
        neighbour.batch_execute(&lock).await.expect("it is free");
    }
    gate.open();
    // Together and one by one, and so again when nothing comes behind them.
    proxy.seen(7, Mode::Lease.settlement()).await;
    freed.batch_execute("ROLLBACK").await.expect("it can");

    running.answer().await.assert_none_failed();

    let rows = [("freed", "sent"), ("stays", "sending")];
    world.database.assert_claims(&rows).await;
    world.sandbox.logs.outcome_of("stays").await;
    world.sandbox.logs.outcome_of("freed").await;
    let lines = world.sandbox.logs.lines();
    let errors = lines.iter().filter(|line| line.level() == "ERROR");
    let keys: Vec<_> = errors.map(|line| line.field("event_id")).collect();
    assert_eq!(keys, ["stays"]);
}

/// The first tries to write so fail.
async fn world_whose_ledger_refuses(mode: Mode, code: &str, write: &str) -> World {
    let world = World::start_with(|environment| {
        environment
            .with("CLAIM_MODE", mode.name())
            .with("IN_DOUBT", "hold")
    })
    .await;
    let trigger = format!(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('tries') <= 3 THEN
                 RAISE EXCEPTION 'not now' USING ERRCODE = '{code}';
             END IF;
             RETURN coalesce(NEW, OLD);
         END $$;
         CREATE TRIGGER refuse BEFORE {write} EXECUTE FUNCTION refuse()"
    );
    world.database.execute(&trigger).await;
    world
}

/// Out of disk, cancelled, a lock that was not had in time.
const PASSES: [&str; 3] = ["53100", "57014", "55P03"];

#[tokio::test]
async fn a_sent_email_is_written_when_postgres_takes_it_again() {
    let of_an_email =
        "INSERT OR UPDATE ON processed_events FOR EACH ROW WHEN (NEW.ses_message_id IS NOT NULL)";
    for mode in [Mode::Transaction, Mode::Lease] {
        for code in PASSES {
            let world = world_whose_ledger_refuses(mode, code, of_an_email).await;
            world
                .sandbox
                .invoke(batch([named("left")]))
                .await
                .assert_none_failed();
            world.database.assert_claims(&[("left", "sent")]).await;
        }
    }
}

#[tokio::test]
async fn what_was_certainly_not_sent_is_released_when_postgres_takes_it_again() {
    for code in PASSES {
        let delete = "DELETE ON processed_events FOR EACH ROW";
        let world = world_whose_ledger_refuses(Mode::Lease, code, delete).await;
        world.ses.reply_always(paused());
        world
            .sandbox
            .invoke(batch([named("paused")]))
            .await
            .assert_failed(&["paused"]);
        world.database.assert_claims(&[]).await;
    }
}
