//! Workers of both modes race for rows in doubt.

use std::time::Duration;

use crate::support::event::{Record, batch};
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::ses::Reply;

use super::{message, named, start};

#[tokio::test]
async fn of_many_workers_that_race_for_a_row_in_doubt_one_sends() {
    let world = start().await;
    let others = [
        world.another_sandbox().await,
        world.sandbox_in(Mode::Transaction).await,
        world.sandbox_in(Mode::Transaction).await,
    ];
    let mut expected = 0;
    for round in 0..10 {
        let keys: Vec<String> = (0..10).map(|key| format!("r{round}-{key}")).collect();
        // Claimed and lost, in all the ways in which a row can say so.
        world.ses.reply_always(Reply::accept_without_reply());
        world
            .sandbox
            .invoke(batch(keys.iter().map(|key| named(key))))
            .await;
        expected += 10;
        world.ses.assert_requests(expected);
        let overdue = "UPDATE processed_events SET lease_until = CASE WHEN random() < 0.5 THEN now() - interval '1 hour' END,
                              processed_at = now() - interval '1 hour', attempt = CASE WHEN random() < 0.5 THEN attempt END
                        WHERE outcome = 'sending'";
        world.database.execute(overdue).await;
        world
            .ses
            .reply_always(Reply::accept().delayed(Duration::from_millis(5)));
        let all: Vec<&Sandbox> = std::iter::once(&world.sandbox)
            .chain(others.iter())
            .collect();
        let running: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(number, sandbox)| {
                let records = keys
                    .iter()
                    .map(|key| message(&format!("w{number}-{key}"), key));
                let records: Vec<Record> = if number % 2 == 0 {
                    records.collect()
                } else {
                    records.rev().collect()
                };
                sandbox.begin(batch(records))
            })
            .collect();
        for running in running {
            running.answer().await;
        }
        expected += 10;
        world.ses.assert_requests(expected);
    }
    let claims = world.database.claims().await;
    assert!(claims.iter().all(|claim| claim.outcome == "sent"));
}
