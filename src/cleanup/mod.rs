//! `cleanup`: forgets what is older than the retention, in batches that nobody beside it notices.
//!
//! A run that its deadline stops leaves the rest to the next one. Two runs at once are harmless.

mod size;
mod sql;
mod sweep;

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::clock::Deadline;
use crate::config::{CleanupConfig, Retention};
use crate::database::{Connections, DatabaseError};
use crate::metrics::{Count, count_many};

use sweep::{BATCH, Progress, Sweep, Task};

/// For the last lines, and the answer to reach Lambda.
const ANSWER: Duration = Duration::from_millis(500);

/// After each batch, as many times as long: nineteen twentieths of the time belong to the claims alone.
const REST: u32 = 19;

/// What a warm sandbox keeps between invocations.
pub struct Cleanup {
    connections: Connections,
    retention: Retention,
}

#[derive(Debug, Serialize)]
pub struct Cleaned {
    /// Rows of all tables together.
    pub deleted: u64,
}

/// How a run went, and what it leaves.
struct Run {
    sweeps: Vec<Sweep>,
    /// Stopped by the deadline.
    unfinished: bool,
    failure: Option<DatabaseError>,
    started: Instant,
}

impl Cleanup {
    /// # Errors
    /// A root certificate can't be read.
    pub fn new(config: &CleanupConfig) -> anyhow::Result<Self> {
        Ok(Self {
            connections: Connections::new(&config.database, 1)?,
            retention: config.retention,
        })
    }

    /// Deletes until nothing old is left or the deadline is near.
    ///
    /// # Errors
    /// The schema is too old, or Postgres failed; what was deleted until then stays deleted.
    pub async fn handle(&self, deadline: Deadline) -> anyhow::Result<Cleaned> {
        let stop = deadline.keeping(ANSWER);
        if let Err(error) = self.connections.check_schema(stop).await {
            return Err(failed(&error).context("Failed to begin"));
        }
        let run = self.run(stop).await;
        run.tell();
        let deleted = run.deleted();
        match run.failure {
            Some(error) => Err(failed(&error).context(format!(
                "Postgres failed, after {deleted} rows were deleted; the next run goes on"
            ))),
            None => Ok(Cleaned { deleted }),
        }
    }

    /// The tables take turns, so that none waits for another to be done.
    async fn run(&self, stop: Deadline) -> Run {
        let started = Instant::now();
        let mut waiting: VecDeque<Sweep> = Task::ALL
            .into_iter()
            .map(|task| Sweep::new(task, self.retention))
            .collect();
        let mut ended = Vec::new();
        let mut failure = None;
        while stop.left() > BATCH
            && let Some(mut sweep) = waiting.pop_front()
        {
            match sweep.batch(&self.connections, stop).await {
                Ok((Progress::More, took)) => {
                    waiting.push_back(sweep);
                    tokio::time::sleep((took * REST).min(stop.left())).await;
                }
                Ok((Progress::Finished, _)) => ended.push(sweep),
                Err(error) => {
                    failure.get_or_insert(error);
                    ended.push(sweep);
                }
            }
        }
        let unfinished = !waiting.is_empty();
        ended.extend(waiting);
        Run {
            sweeps: ended,
            unfinished,
            failure,
            started,
        }
    }
}

/// What can be said of it without quoting data.
fn failed(error: &DatabaseError) -> anyhow::Error {
    anyhow::anyhow!("{} ({})", error.cause(), error.code())
}

impl Run {
    fn changed(&self, task: Task) -> u64 {
        let of_task = self.sweeps.iter().filter(|sweep| sweep.task == task);
        of_task.map(|sweep| sweep.changed).sum()
    }

    fn deleted(&self) -> u64 {
        let all: u64 = self.sweeps.iter().map(|sweep| sweep.changed).sum();
        all - self.changed(Task::Hold)
    }

    fn longest_batch(&self) -> Duration {
        let longest = self.sweeps.iter().map(|sweep| sweep.longest);
        longest.max().unwrap_or_default()
    }

    fn tell(&self) {
        let held = self.changed(Task::Hold);
        count_many(Count::Deleted, self.deleted());
        count_many(Count::Held, held);
        if held > 0 {
            tracing::warn!(
                held,
                "sends that were never settled are held as `unknown`: no message of theirs can come back, and whether \
                 their emails left is for you to find out"
            );
        }
        macro_rules! line {
            ($message:literal) => {
                tracing::info!(
                    processed_events = self.changed(Task::DeleteProcessedEvents),
                    email_feedback = self.changed(Task::DeleteEmailFeedback),
                    sends_in_doubt = self.changed(Task::DeleteSendsInDoubt),
                    finished = !self.unfinished && self.failure.is_none(),
                    longest_batch_ms = self.longest_batch().as_millis() as u64,
                    elapsed_ms = self.started.elapsed().as_millis() as u64,
                    $message
                )
            };
        }
        if self.unfinished {
            line!("old rows deleted, not all of them: time is up, and the next run goes on");
        } else {
            line!("old rows deleted");
        }
    }
}
