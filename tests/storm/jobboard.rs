//! The job board and the ledger, as `migrate` and the job board's fixture make them, and what the storm needs besides.

use std::path::Path;

use tokio_postgres::Client;

use crate::plan::{FIRST_ORDER, IMPOSSIBLE_APPLICATION, Plan, WITHHELD_APPLICATION};
use crate::postgres::Postgres;
use crate::support::by_hand;
use crate::support::environment::Environment;

pub const DATABASE: &str = "storm";

/// What may be written to: all that the fixture has, which leaves out the recipient of `Kind::Withheld`.
pub const ALLOW_LIST: &str = "@example.com,@example.org,@example.net,@müller.test";

pub async fn create(postgres: &Postgres, plan: &Plan) {
    let administrator = connect(postgres, "postgres").await;
    execute(&administrator, &format!("CREATE DATABASE {DATABASE}")).await;
    let url = url_at(postgres.port(), "migrate");
    let migrated = by_hand::run(&Environment::migrate(&url), &["migrate", "-"], "{}").await;
    assert!(migrated.success, "`onemail migrate` failed: {migrated:?}");

    let client = connect(postgres, DATABASE).await;
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("local/jobboard.sql");
    let fixture = std::fs::read_to_string(&fixture).expect("the job board's fixture");
    execute(&client, &fixture).await;
    execute(
        &client,
        &format!(
            "INSERT INTO auth_user (id, email, first_name, last_name) VALUES \
                 (900, 'jörg@example.com', 'Jörg', ''), (901, 'kim@elsewhere.test', 'Kim', ''); \
             INSERT INTO jobs_candidate (id, user_id, locale) VALUES (900, 900, 'de'), (901, 901, 'en'); \
             INSERT INTO jobs_application (id, job_id, candidate_id, status) VALUES \
                 ({IMPOSSIBLE_APPLICATION}, 51, 900, 'submitted'), ({WITHHELD_APPLICATION}, 51, 901, 'submitted'); \
             INSERT INTO billing_order (id, company_id, contact_email, item, total_cents, currency) \
             SELECT id, 21, 'billing@example.com', 'Job posting, 30 days', 29900, 'EUR' \
               FROM generate_series({FIRST_ORDER}, {FIRST_ORDER} + {}) AS id",
            plan.events.len()
        ),
    )
    .await;
}

/// The URL that a worker gets; its name tells the proxy whose connection it is.
pub fn url_at(port: u16, worker: &str) -> String {
    format!(
        "postgresql://postgres@127.0.0.1:{port}/{DATABASE}?sslmode=disable&application_name={worker}"
    )
}

pub async fn connect(postgres: &Postgres, database: &str) -> Client {
    let connected = postgres.connect(database).await;
    connected.expect("the server runs")
}

pub async fn execute(client: &Client, statements: &str) {
    let executed = client.batch_execute(statements).await;
    executed.unwrap_or_else(|error| panic!("{error:?}: {statements}"));
}
