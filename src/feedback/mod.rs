//! `feedback`: records what SES says of each email, and completes the claim of an email whose worker died.
//!
//! SES knows no idempotency key, but it tells which emails it took, with our tags: it is itself the durable
//! record of the side effect.

mod kind;
mod line;
mod notification;
mod outcome;
mod record;
mod sql;

pub use kind::Kind;
pub use notification::{NotANotification, Notification};

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::Context as _;
use aws_lambda_events::sqs::SqsBatchResponse;
use futures_util::FutureExt as _;
use serde_json::Value;

use crate::clock::Deadline;
use crate::config::DatabaseConfig;
use crate::database::Connections;
use crate::queue::{Answer, Batch, Queue, Record, each, until};

use line::Line;
use outcome::Outcome;

/// Notifications handled at once; each takes a connection for milliseconds.
const AT_ONCE: usize = 4;
/// For the answer to reach Lambda.
const ANSWER: Duration = Duration::from_millis(300);
/// For telling SQS when failed notifications come back.
const COME_BACK: Duration = Duration::from_millis(700);

/// What a warm sandbox keeps between invocations.
pub struct Feedback {
    connections: Connections,
    queue: Queue,
}

impl Feedback {
    /// # Errors
    /// A root certificate can't be read.
    pub fn new(database: &DatabaseConfig, aws: &aws_config::SdkConfig) -> anyhow::Result<Self> {
        Ok(Self {
            connections: Connections::new(database, AT_ONCE)?,
            queue: Queue::new(aws),
        })
    }

    /// Handles a batch of notifications, each of which may come in any order and more than once.
    ///
    /// # Errors
    /// The payload is no SQS event, or a failed record has no identifier to report.
    pub async fn handle(
        &self,
        payload: Value,
        deadline: Deadline,
        request_id: &str,
    ) -> anyhow::Result<SqsBatchResponse> {
        let batch = Batch::parse(payload)?;
        let answer = Answer::all_failed(&batch.records);
        let recorded_by = deadline.keeping(ANSWER + COME_BACK);
        let cut_off = deadline.keeping(ANSWER + COME_BACK / 2);
        let work = each(
            batch.records.iter().enumerate(),
            AT_ONCE,
            |(index, record)| self.handle_record(index, record, &answer, recorded_by, request_id),
        );
        until(cut_off, work).await;
        self.queue
            .bring_back(&answer.come_backs(&batch.records), deadline.keeping(ANSWER))
            .await;
        answer
            .into_response()
            .context("The batch can't be answered record by record")
    }

    async fn handle_record(
        &self,
        index: usize,
        record: &Record,
        answer: &Answer,
        deadline: Deadline,
        request_id: &str,
    ) {
        let mut line = Line::new(record, request_id);
        let recorded = AssertUnwindSafe(self.record(record, &mut line, deadline)).catch_unwind();
        let outcome = recorded.await.unwrap_or(Outcome::Panicked);
        if outcome.is_done() {
            answer.done(index);
        } else if let Some(after) = outcome.comes_back_after(record.receive_count) {
            answer.come_back(index, after);
        }
        // Not even a fault in telling of it may touch the record or its neighbours.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| line.end(&outcome)));
    }

    async fn record(&self, record: &Record, line: &mut Line<'_>, deadline: Deadline) -> Outcome {
        let notification = match Notification::parse(record.body.as_deref()) {
            Ok(notification) => line.tell(notification),
            Err(NotANotification::Greeting) => return Outcome::Greeting,
            Err(problem) => return Outcome::Malformed(problem),
        };
        // After a try whose answer was lost, what is found recorded is what that try recorded, and not told of yet.
        // So it is after an invocation that died.
        let tried = Cell::new(record.receive_count > 1);
        let recorded = self
            .connections
            .with(deadline, async |connection| {
                let tried = tried.replace(true);
                record::record(connection, notification, tried, deadline).await
            })
            .await;
        match recorded {
            Ok(recorded) => Outcome::Recorded(recorded),
            Err(error) => error.into(),
        }
    }
}
