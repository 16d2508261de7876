//! The counters of a server, before and after.

use std::path::Path;

use tokio_postgres::Client;

use crate::support::by_hand;
use crate::support::environment::Environment;
use crate::support::patience::within_reason;

use super::postgres::Postgres;

/// What it took, beyond the opening of the connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cost {
    pub connections: i64,
    /// Each `BEGIN`, `SET LOCAL` and the like is one too.
    pub statements: i64,
    /// Of transactions that only read, too.
    pub commits: i64,
    pub rollbacks: i64,
    /// Of transactions that wrote.
    pub transaction_ids: i64,
    pub wal_bytes: i64,
}

impl Cost {
    pub const NAMES: [&str; 6] = [
        "connections",
        "statements",
        "commits",
        "rollbacks",
        "transaction ids",
        "bytes of WAL",
    ];

    pub fn figures(self) -> [i64; 6] {
        [
            self.connections,
            self.statements,
            self.commits,
            self.rollbacks,
            self.transaction_ids,
            self.wal_bytes,
        ]
    }

    fn since(self, before: Self) -> Self {
        Self {
            connections: self.connections - before.connections,
            statements: self.statements - before.statements,
            commits: self.commits - before.commits,
            rollbacks: self.rollbacks - before.rollbacks,
            transaction_ids: self.transaction_ids - before.transaction_ids,
            wal_bytes: self.wal_bytes - before.wal_bytes,
        }
    }
}

/// A server on which nothing happens but what the test does.
pub struct Server {
    postgres: Postgres,
    /// To another database than those that are counted.
    observer: Client,
}

impl Server {
    pub async fn start() -> Self {
        let postgres = Postgres::start().await;
        let administrator = postgres.connect("postgres").await.expect("it has started");
        for setting in [
            "shared_preload_libraries = 'pg_stat_statements'",
            "autovacuum = off",
            // Neither of these lets the server write by itself.
            "checkpoint_timeout = '1h'",
            "wal_level = 'minimal'",
            "max_wal_senders = 0",
        ] {
            let set = format!("ALTER SYSTEM SET {setting}");
            administrator.batch_execute(&set).await.expect("a setting");
        }
        postgres.crash_and_recover().await;
        let observer = postgres.connect("postgres").await.expect("it is back");
        let extension = "CREATE EXTENSION pg_stat_statements";
        observer.batch_execute(extension).await.expect("it has it");
        Self { postgres, observer }
    }

    pub async fn stop(self) {
        drop(self.observer);
        self.postgres.stop().await;
    }

    pub fn port(&self) -> u16 {
        self.postgres.port()
    }

    pub fn url(port: u16, database: &str) -> String {
        format!("postgresql://postgres@127.0.0.1:{port}/{database}")
    }

    /// With a ledger and a job board.
    pub async fn make_database(&self, database: &str) {
        let create = format!("CREATE DATABASE {database}");
        self.observer
            .batch_execute(&create)
            .await
            .expect("a database");
        let migrate = Environment::migrate(&Self::url(self.port(), database));
        let migrated = by_hand::run(&migrate, &["migrate", "-"], "{}").await;
        assert!(migrated.success, "{migrated:?}");
        let job_board = Path::new(env!("CARGO_MANIFEST_DIR")).join("local/jobboard.sql");
        let job_board = std::fs::read_to_string(job_board).expect("it is there");
        self.execute(database, &job_board).await;
    }

    pub async fn vacuum(&self, database: &str) {
        self.execute(database, "VACUUM").await;
    }

    async fn execute(&self, database: &str, statements: &str) {
        let client = self.postgres.connect(database).await.expect("it is up");
        client
            .batch_execute(statements)
            .await
            .expect("they are right");
    }

    /// What the work cost, which must have ended its sessions when it ends.
    pub async fn cost_of(&self, database: &str, work: impl Future<Output = ()>) -> Cost {
        let opening = {
            let before = self.counters(database).await;
            drop(self.postgres.connect(database).await.expect("it is up"));
            self.counters(database).await.since(before)
        };
        assert_eq!(opening.connections, 1);
        let before = self.counters(database).await;
        work.await;
        let mut cost = self.counters(database).await.since(before);
        cost.commits -= cost.connections * opening.commits;
        cost.rollbacks -= cost.connections * opening.rollbacks;
        cost
    }

    /// Once all sessions of the database have ended: it is then that they have told all.
    async fn counters(&self, database: &str) -> Cost {
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1";
        let ended = async {
            while self.number(sessions, &[&database]).await != 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        within_reason("the end of the sessions", ended).await;
        let of_the_database = async |counter: &str| {
            let query = format!("SELECT {counter} FROM pg_stat_database WHERE datname = $1");
            self.number(&query, &[&database]).await
        };
        Cost {
            connections: of_the_database("sessions").await,
            commits: of_the_database("xact_commit").await,
            rollbacks: of_the_database("xact_rollback").await,
            statements: self
                .number(
                    "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements \
                      WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)",
                    &[&database],
                )
                .await,
            transaction_ids: self
                .number(
                    "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
                    &[],
                )
                .await,
            wal_bytes: self
                .number("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &[])
                .await,
        }
    }

    async fn number(
        &self,
        query: &str,
        parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> i64 {
        let row = self.observer.query_one(query, parameters).await;
        row.expect("the test's query is right").get(0)
    }
}
