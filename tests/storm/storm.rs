//! The weather as forecast, over everybody at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::jobboard::DATABASE;
use crate::plan::{Plan, Role, Weather};
use crate::postgres::Postgres;
use crate::sky::Sky;
use crate::tally::Tally;
use crate::victims::Victims;

/// Lasts until the storm is over and all that it began has ended.
pub async fn rage(
    plan: &Plan,
    start: Instant,
    sky: &Sky,
    postgres: &Arc<Postgres>,
    everybody: &[Arc<Victims>],
    tally: &Arc<Tally>,
) {
    let mut underway = JoinSet::new();
    for (at, weather) in &plan.weather {
        tokio::time::sleep_until((start + *at).into()).await;
        match weather.clone() {
            Weather::Kill { role, which } => {
                let letter = match role {
                    Role::Notify => 'n',
                    Role::Feedback => 'f',
                };
                for victims in everybody {
                    if let Some(name) = victims.pick(letter, which) {
                        victims.kill(&name);
                    }
                }
            }
            Weather::Stop { which } => {
                for victims in everybody {
                    if let Some(name) = victims.pick('n', which) {
                        victims.stop(&name);
                    }
                }
            }
            Weather::Cut => {
                tally.count("cuts");
                sky.cut();
            }
            Weather::Restart => {
                tally.count("restarts");
                underway.spawn(restart(postgres.clone(), everybody.to_vec()));
            }
            Weather::HoldKey { key, time } => {
                tally.count("keys held");
                let insert = format!(
                    "INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256) \
                     VALUES ('{key}', 'neighbour', 'sent', 'operator', '') ON CONFLICT DO NOTHING"
                );
                underway.spawn(hold(postgres.clone(), insert, time));
            }
            Weather::LockJobBoard { time } => {
                tally.count("tables locked");
                let lock = "LOCK TABLE jobs_application IN ACCESS EXCLUSIVE MODE".to_owned();
                underway.spawn(hold(postgres.clone(), lock, time));
            }
            Weather::Throttle { time } => sky.throttle(time),
            Weather::SesDown { time } => sky.take_ses_down(time),
        }
    }
    tokio::time::sleep_until((start + plan.length).into()).await;
    sky.calm_down();
    while let Some(ended) = underway.join_next().await {
        ended.expect("nothing here fails but what a restart ends");
    }
}

async fn restart(postgres: Arc<Postgres>, everybody: Vec<Arc<Victims>>) {
    let (began, ended) = postgres.crash_and_recover().await;
    for victims in everybody {
        victims.postgres_was_restarted(began, ended);
    }
}

/// A neighbour's transaction. That Postgres ends it, or doesn't take it, is weather too.
async fn hold(postgres: Arc<Postgres>, statement: String, time: Duration) {
    let Ok(client) = postgres.connect(DATABASE).await else {
        return;
    };
    let begun = client
        .batch_execute(&format!(
            "BEGIN; SET LOCAL lock_timeout = '2s'; {statement}"
        ))
        .await;
    if begun.is_ok() {
        tokio::time::sleep(time).await;
        let _ = client.batch_execute("ROLLBACK").await;
    }
}
