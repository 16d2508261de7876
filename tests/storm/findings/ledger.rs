//! The ledger, row by row.

use std::collections::HashMap;

use tokio_postgres::Client;

use crate::jobboard::{self, DATABASE};
use crate::modes::Modes;
use crate::plan::{Event, Plan};
use crate::postgres::Postgres;

use super::letters::Letters;
use super::{Emails, Findings};

/// What the ledger says of a key.
pub struct Row {
    pub outcome: String,
    pub ses_message_id: Option<String>,
    pub settled_by: String,
}

impl Findings {
    pub(super) async fn check_ledger(
        &mut self,
        plan: &Plan,
        emails: &Emails,
        letters: &Letters,
        postgres: &Postgres,
    ) -> HashMap<String, Row> {
        let client = jobboard::connect(postgres, DATABASE).await;
        let rows = rows(&client).await;
        for event in &plan.events {
            let row = rows.get(&event.key);
            let outcome = row.map(|row| row.outcome.as_str());
            if !self.is_open(plan.modes, event, outcome, letters) && outcome != event.kind.outcome()
            {
                self.stuck.push(format!(
                    "the ledger says {outcome:?} of {}, which is {:?}",
                    event.key, event.kind
                ));
            }
            let id = row.and_then(|row| row.ses_message_id.clone());
            let ids = emails.get(&event.key);
            let known = id
                .as_ref()
                .zip(ids)
                .is_some_and(|(id, ids)| ids.contains(id));
            if outcome == Some("sent") && !known {
                self.stuck.push(format!(
                    "the ledger says that {} left as {id:?}, and SES took {ids:?}",
                    event.key
                ));
            }
        }
        self.check_feedback(&client, emails).await;
        self.check_locks(&client, plan).await;
        rows
    }

    /// Whether the row is one that somebody must look at, as a dead letter says.
    fn is_open(
        &mut self,
        modes: Modes,
        event: &Event,
        outcome: Option<&str>,
        letters: &Letters,
    ) -> bool {
        let reasons = letters.get(&event.key);
        let has_letter = |reason: &str| reasons.is_some_and(|reasons| reasons.contains(reason));
        match outcome {
            Some("unknown") if modes == Modes::Hold && has_letter("held") => {
                self.held.insert(event.key.clone())
            }
            // It was refused, and its claim could not be released before the deadline.
            Some("sending")
                if modes.have_leases()
                    && !event.kind.is_emailed()
                    && event.kind.reason().is_some_and(has_letter) =>
            {
                self.left_sending.insert(event.key.clone())
            }
            _ => false,
        }
    }

    async fn check_feedback(&mut self, client: &Client, emails: &Emails) {
        let told = "SELECT event_id, ses_message_id, count(*) FROM email_feedback \
                     WHERE kind = 'send' GROUP BY event_id, ses_message_id";
        let told = client.query(told, &[]).await.expect("the table is there");
        let told: HashMap<(Option<String>, Option<String>), i64> = told
            .iter()
            .map(|row| ((row.get(0), row.get(1)), row.get(2)))
            .collect();
        for (key, ids) in emails {
            for id in ids {
                let times = told.get(&(Some(key.clone()), Some(id.clone())));
                if times != Some(&1) {
                    self.unrecorded.push(format!(
                        "{id} of {key} is in email_feedback {times:?} times"
                    ));
                }
            }
        }
    }

    /// Nobody holds a key, or anything else: each can be claimed, were it not in the ledger.
    async fn check_locks(&mut self, client: &Client, plan: &Plan) {
        let keys: Vec<&str> = plan.events.iter().map(|event| event.key.as_str()).collect();
        let claim = "INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256) \
                     SELECT DISTINCT key, 'claimable', 'sent', 'worker', ''::bytea FROM unnest($1::text[]) AS key \
                     ON CONFLICT DO NOTHING";
        let claimed = async {
            client
                .batch_execute("BEGIN; SET LOCAL lock_timeout = '1s'")
                .await?;
            client.execute(claim, &[&keys]).await?;
            client.batch_execute("ROLLBACK").await
        };
        if let Err(error) = claimed.await {
            self.stuck.push(format!("a key can't be claimed: {error}"));
        }
        let open = "SELECT application_name, state FROM pg_stat_activity \
                     WHERE state LIKE 'idle in transaction%' AND pid <> pg_backend_pid() \
                       AND datname = current_database()";
        for row in client.query(open, &[]).await.expect("it can be asked") {
            let worker: String = row.get(0);
            self.stuck.push(format!("{worker} has a transaction open"));
        }
    }
}

async fn rows(client: &Client) -> HashMap<String, Row> {
    let query = "SELECT event_id, outcome, ses_message_id, settled_by FROM processed_events";
    let rows = client.query(query, &[]).await.expect("the table is there");
    rows.iter()
        .map(|row| {
            let fields = Row {
                outcome: row.get(1),
                ses_message_id: row.get(2),
                settled_by: row.get(3),
            };
            (row.get(0), fields)
        })
        .collect()
}
