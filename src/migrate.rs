//! `migrate`: brings the ledger's schema to the version that this binary needs.

use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use crate::clock::Deadline;
use crate::config::DatabaseConfig;
use crate::database::Connections;

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// Any number that nothing else in the database locks: "onemail" in ASCII.
const ADVISORY_LOCK: i64 = 0x006f_6e65_6d61_696c;

#[derive(Debug, Serialize)]
pub struct Migrated {
    /// The names of the migrations that were applied now.
    pub applied: Vec<String>,
    /// The version after them.
    pub schema_version: i32,
}

/// Applies what is missing. Two at once are harmless: the second waits, and finds nothing to do.
///
/// # Errors
/// The database can't be reached, or a migration fails; each migration is applied whole or not at all.
pub async fn migrate(config: &DatabaseConfig, deadline: Deadline) -> anyhow::Result<Migrated> {
    tokio::time::timeout_at(deadline.keeping(ANSWER).instant(), apply(config, deadline))
        .await
        .context(
            "Failed to migrate in time: another migration may hold the lock, or a pooler may have no second \
             connection to give",
        )?
}

async fn apply(config: &DatabaseConfig, deadline: Deadline) -> anyhow::Result<Migrated> {
    let connections = Connections::new(config, 2)?;
    // On a connection of its own, and in a transaction: a pooler in transaction mode may hand the session of a
    // connection to others between two transactions.
    let guard = connections.get(deadline).await.context(UNREACHABLE)?;
    guard
        .client()
        .batch_execute(&format!(
            "BEGIN; SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"
        ))
        .await
        .context("Failed to take the lock for migrations")?;

    let mut connection = connections.get(deadline).await.context(UNREACHABLE)?;
    let mut runner = embedded::migrations::runner();
    runner.set_migration_table_name("onemail_migrations");
    let report = runner
        .run_async(connection.client_mut())
        .await
        .context("Failed to apply the migrations")?;
    let schema_version = runner
        .get_last_applied_migration_async(connection.client_mut())
        .await
        .context("Failed to read the schema's version")?
        .map_or(0, |migration| migration.version());
    connection.rest();
    // Dropped, the guard's transaction ends and so does its lock.
    drop(guard);
    Ok(Migrated {
        applied: report
            .applied_migrations()
            .iter()
            .map(|migration| format!("V{}__{}", migration.version(), migration.name()))
            .collect(),
        schema_version,
    })
}

/// For the answer to reach Lambda.
const ANSWER: Duration = Duration::from_millis(500);
const UNREACHABLE: &str = "Failed to connect to Postgres";
