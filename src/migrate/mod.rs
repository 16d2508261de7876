//! `migrate`: brings the ledger's schema to the version that this binary needs.

mod patient;

use std::time::Duration;

use anyhow::Context as _;
use refinery::error::Kind;
use refinery::{Migration, Runner};
use serde::Serialize;

use crate::clock::Deadline;
use crate::config::DatabaseConfig;
use crate::database::Connections;

use patient::{Patient, found_locked};

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

/// Applies what is missing. Two at once are harmless: the second waits, and finds nothing to do. A schema that is
/// newer than this binary, after a rollback of the code, is left as it is.
///
/// # Errors
/// The database can't be reached, or a migration fails; each migration is applied whole or not at all.
pub async fn migrate(config: &DatabaseConfig, deadline: Deadline) -> anyhow::Result<Migrated> {
    tokio::time::timeout_at(deadline.keeping(ANSWER).instant(), apply(config, deadline))
        .await
        .context(
            "Failed to migrate in time: another migration may hold the lock, a transaction that was left open may \
             hold the ledger's tables, or a pooler may have no second connection to give",
        )?
}

/// The versions of `migrations/`, in their order.
#[cfg(test)]
pub(crate) fn versions() -> Vec<i32> {
    let runner = embedded::migrations::runner();
    let mut versions: Vec<i32> = runner
        .get_migrations()
        .iter()
        .map(Migration::version)
        .collect();
    versions.sort_unstable();
    versions
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
    runner.set_migration_table_name(HISTORY);
    let mut patient = Patient {
        client: connection.client_mut(),
        deadline: deadline.keeping(ANSWER),
    };
    let mut applied = Vec::new();
    loop {
        match runner.run_async(&mut patient).await {
            Ok(report) => {
                applied.extend(report.applied_migrations().iter().map(name));
                break;
            }
            Err(error) if found_locked(&error) => {
                let before = error.report().map(|report| report.applied_migrations());
                applied.extend(before.into_iter().flatten().map(name));
                tracing::info!("the ledger's tables are in use; trying the migration again");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) if is_of_a_newer_binary(&error, &runner) => {
                verify_newer(&runner, &mut patient).await?;
                tracing::warn!("the schema is newer than this binary; it is left as it is");
                break;
            }
            Err(error) => return Err(error).context("Failed to apply the migrations"),
        }
    }
    let schema_version = runner
        .get_last_applied_migration_async(&mut patient)
        .await
        .context(UNREADABLE)?
        .map_or(0, |migration| migration.version());
    connection.rest();
    // Dropped, the guard's transaction ends and so does its lock.
    drop(guard);
    Ok(Migrated {
        applied,
        schema_version,
    })
}

fn name(migration: &Migration) -> String {
    format!("V{}__{}", migration.version(), migration.name())
}

/// refinery refuses a schema that has a migration which it doesn't know.
fn is_of_a_newer_binary(error: &refinery::Error, runner: &Runner) -> bool {
    let newest = runner.get_migrations().iter().map(Migration::version).max();
    matches!(error.kind(), Kind::MissingVersion(unknown) if Some(unknown.version()) > newest)
}

/// Newer, and not merely another: all that this binary needs was applied.
async fn verify_newer(runner: &Runner, patient: &mut Patient<'_>) -> anyhow::Result<()> {
    let applied = runner
        .get_applied_migrations_async(patient)
        .await
        .context(UNREADABLE)?;
    let missing = runner
        .get_migrations()
        .iter()
        .find(|ours| applied.iter().all(|theirs| theirs != *ours));
    match missing {
        Some(missing) => Err(anyhow::anyhow!(
            "The schema has migrations that this binary doesn't know, and not its own {}",
            name(missing)
        )),
        None => Ok(()),
    }
}

/// refinery's table of what was applied.
const HISTORY: &str = "onemail_migrations";
/// For the answer to reach Lambda.
const ANSWER: Duration = Duration::from_millis(500);
/// Claims that waited behind us go on meanwhile.
const PAUSE: Duration = Duration::from_millis(500);
const UNREACHABLE: &str = "Failed to connect to Postgres";
const UNREADABLE: &str = "Failed to read the schema's version";
