//! One walk over the old rows of a table, batch by batch.

use std::time::Duration;

use futures_util::future::join3;
use tokio::time::Instant;
use tokio_postgres::types::Type;

use crate::clock::Deadline;
use crate::config::{LEAST_DAYS, Retention};
use crate::database::{Connection, Connections, DatabaseError, DatabaseVerdict};

use super::size::Size;
use super::sql;

/// As long as a batch may take, seen from here; Postgres gives up a little sooner.
pub(super) const BATCH: Duration = Duration::from_secs(1);

/// What a walk does to what is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Sends that nobody can tell of any more become `unknown`.
    Hold,
    DeleteProcessedEvents,
    DeleteEmailFeedback,
    DeleteSendsInDoubt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There may be more.
    More,
    /// Nothing old is left, but what others work on.
    Finished,
}

pub(super) struct Sweep {
    pub task: Task,
    days: u16,
    /// Where the last batch ended, in the words of the task's statement.
    from: String,
    size: Size,
    /// Rows changed so far.
    pub changed: u64,
    /// The longest batch so far, of those that were done.
    pub longest: Duration,
}

/// What a batch answered.
struct Batch {
    more: bool,
    changed: u64,
    next: Option<String>,
    took: Duration,
}

impl Task {
    pub const ALL: [Self; 4] = [
        Self::Hold,
        Self::DeleteProcessedEvents,
        Self::DeleteEmailFeedback,
        Self::DeleteSendsInDoubt,
    ];

    fn statement(self) -> &'static str {
        match self {
            Self::Hold => sql::HOLD,
            Self::DeleteProcessedEvents => sql::DELETE_PROCESSED_EVENTS,
            Self::DeleteEmailFeedback => sql::DELETE_EMAIL_FEEDBACK,
            Self::DeleteSendsInDoubt => sql::DELETE_SENDS_IN_DOUBT,
        }
    }

    fn start(self) -> &'static str {
        match self {
            Self::Hold => "0",
            _ => "-infinity",
        }
    }

    /// Of a batch, however quick it is: what it writes to Postgres's log, a commit beside it waits for.
    fn most(self) -> u32 {
        match self {
            // Blocks, which are but read.
            Self::Hold => 4096,
            // Rows.
            _ => 2000,
        }
    }
}

impl Sweep {
    pub fn new(task: Task, retention: Retention) -> Self {
        Self {
            task,
            days: match task {
                // No message of theirs can come back after this, whatever the retention.
                Task::Hold => LEAST_DAYS,
                _ => retention.days(),
            },
            from: task.start().to_owned(),
            size: Size::at_most(task.most()),
            changed: 0,
            longest: Duration::ZERO,
        }
    }

    /// Does one batch, in a transaction of its own. Returns how it took, too.
    ///
    /// # Errors
    /// Nothing of this batch was done, or the answer was lost; the batches before stand.
    pub async fn batch(
        &mut self,
        connections: &Connections,
        deadline: Deadline,
    ) -> Result<(Progress, Duration), DatabaseError> {
        let begun = Instant::now();
        let done = connections
            .with(deadline, async |connection| {
                tokio::time::timeout(deadline.left_at_most(BATCH), self.attempt(connection))
                    .await
                    .unwrap_or(Err(DatabaseError::NoAnswerInTime))
            })
            .await;
        let took = begun.elapsed();
        let batch = match done {
            Ok(batch) => batch,
            Err(error) if took_too_long(&error) && self.size.shrink() => {
                return Ok((Progress::More, took));
            }
            Err(error) => return Err(error),
        };
        self.changed += batch.changed;
        self.longest = self.longest.max(batch.took);
        if let Some(next) = batch.next {
            self.from = next;
        }
        self.size.adapt(took);
        let progress = if batch.more {
            Progress::More
        } else {
            Progress::Finished
        };
        Ok((progress, took))
    }

    /// In one round trip.
    async fn attempt(&self, connection: Connection) -> Result<Batch, DatabaseError> {
        let started = Instant::now();
        let client = connection.client();
        let (begun, swept, committed) = join3(
            client.batch_execute(sql::BEGIN),
            client.query_typed(
                self.task.statement(),
                &[
                    (&self.from, Type::TEXT),
                    (&i32::from(self.days), Type::INT4),
                    (&self.size.get(), Type::INT8),
                ],
            ),
            client.batch_execute("COMMIT"),
        )
        .await;
        let result = (|| -> Result<Batch, DatabaseError> {
            begun?;
            let swept = swept?;
            committed?;
            let row = swept.first().ok_or(DatabaseError::NoTransaction)?;
            Ok(Batch {
                more: row.try_get("more")?,
                changed: row.try_get::<_, i64>("changed")?.unsigned_abs(),
                next: row.try_get("next")?,
                took: started.elapsed(),
            })
        })();
        match &result {
            Err(error) if error.verdict() == DatabaseVerdict::TryAnotherConnection => {}
            _ => connection.rest(),
        }
        result
    }
}

/// Postgres's own statement timeout, or a lock that isn't a row's.
fn took_too_long(error: &DatabaseError) -> bool {
    matches!(error.code(), "57014" | "55P03")
}
