//! `notify`: walks each record of a batch from the event to the settled email, and answers SQS.
//!
//! There are two orders. Both begin with the batch's `lanes`, `dispatch` an email in the same way, and
//! end with the record's `line`:
//!
//! | `transaction` | `lease` |
//! | --- | --- |
//! | for each record: claim and look up, in a transaction | for all records: claim, committed |
//! | | look up, in one round trip |
//! | dispatch | dispatch each |
//! | settle, in the same transaction | settle, in groups, as they are dispatched |

mod budget;
mod dispatch;
mod item;
mod lanes;
mod lease;
mod line;
mod outcome;
mod transaction;

pub use outcome::{Outcome, Refusal, Release};

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::Context as _;
use aws_lambda_events::sqs::SqsBatchResponse;
use serde_json::Value;

use crate::clock::Deadline;
use crate::config::{ClaimConfig, ClaimMode, MailConfig, NotifyConfig, RecipientPolicy};
use crate::database::Connections;
use crate::emails::Catalogue;
use crate::queue::{Answer, Batch, DeadLetter, DeadLetters, Queue, each, until};
use crate::send::{Mailer, Pace, Sender};

use item::Item;

/// What a warm sandbox keeps between invocations.
pub struct Notifier {
    catalogue: Catalogue,
    connections: Connections,
    mailer: Mailer,
    mail: MailConfig,
    recipients: RecipientPolicy,
    claim: ClaimConfig,
    pace: Pace,
    queue: Queue,
    dead_letters: Option<DeadLetters>,
}

/// What the work on a batch borrows.
struct Invocation<'a> {
    notifier: &'a Notifier,
    sender: Sender<'a>,
    deadline: Deadline,
}

impl Notifier {
    /// # Errors
    /// An email's folder is broken, or a root certificate can't be read.
    pub fn new(config: NotifyConfig, aws: &aws_config::SdkConfig) -> anyhow::Result<Self> {
        let most_connections = match config.claim.mode {
            ClaimMode::Transaction => config.claim.max_in_flight.get(),
            ClaimMode::Lease => 1,
        };
        Ok(Self {
            catalogue: Catalogue::compiled_in()?,
            connections: Connections::new(&config.database, most_connections)?,
            mailer: Mailer::new(aws, config.mail.configuration_set.clone()),
            mail: config.mail,
            recipients: config.recipients,
            pace: Pace::new(config.claim.max_send_rate),
            claim: config.claim,
            queue: Queue::new(aws),
            dead_letters: config.dead_letter_queue_url.map(DeadLetters::new),
        })
    }

    /// Handles a batch. A record is a failure until it is known to be done, so neither a panic nor the deadline
    /// can acknowledge what wasn't handled.
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
        let invocation = Invocation {
            notifier: self,
            sender: self.mailer.for_invocation(),
            deadline,
        };
        let items = Item::read_all(&batch.records, &self.catalogue, request_id);
        let lanes = lanes::of(items);
        until(budget::cut_off(deadline), async {
            match self.claim.mode {
                ClaimMode::Transaction => invocation.in_transactions(lanes, &answer).await,
                ClaimMode::Lease => invocation.under_leases(lanes, &answer).await,
            }
        })
        .await;
        self.queue
            .bring_back(
                &answer.come_backs(&batch.records),
                budget::told_by(deadline),
            )
            .await;
        answer
            .into_response()
            .context("The batch can't be answered record by record")
    }
}

impl Invocation<'_> {
    /// Runs the pieces of a batch, as many at once as emails may be in flight.
    async fn each<W, F: Future<Output = ()>>(
        &self,
        pieces: impl IntoIterator<Item = W>,
        run: impl Fn(W) -> F,
    ) {
        each(pieces, self.notifier.claim.max_in_flight.get(), run).await;
    }

    /// The record's end: what SQS is told of it, and its line.
    fn finish(&self, mut item: Item<'_>, outcome: &Outcome, answer: &Answer) {
        if outcome.is_done() {
            answer.done(item.index);
        } else {
            let in_doubt_wait = self.notifier.claim.in_doubt_wait;
            let receive_count = item.record.receive_count;
            if let Some(after) = outcome.comes_back_after(receive_count, in_doubt_wait) {
                answer.come_back(item.index, after);
            }
        }
        // Not even a fault in telling of it may touch the record or its neighbours.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| item.line.end(outcome)));
    }

    /// Moves an event that can never be sent to the dead-letter queue, if there is one to move it to.
    async fn give_up(&self, item: &Item<'_>, outcome: Outcome, by: Deadline) -> Outcome {
        let (refusal, dead_letters) = match (outcome, &self.notifier.dead_letters) {
            (Outcome::Refused(refusal), Some(dead_letters)) => (refusal, dead_letters),
            (outcome, _) => return outcome,
        };
        let detail = refusal.to_string();
        let letter = DeadLetter {
            record: item.record,
            reason: refusal.reason(),
            detail: &detail,
            event_id: item.event.as_ref().ok().map(|event| event.key.as_str()),
        };
        let put = dead_letters.put(&self.notifier.queue, &letter);
        let cause = match tokio::time::timeout_at(by.instant(), put).await {
            Ok(Ok(())) => return Outcome::DeadLettered(refusal),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer from SQS in time".to_owned(),
        };
        tracing::warn!(
            message_id = item.record.message_id.as_ref().map(|id| id.as_str()),
            cause,
            "the message could not be moved to DEAD_LETTER_QUEUE_URL; it is reported, and the redrive policy moves it"
        );
        Outcome::Refused(refusal)
    }
}

/// By hand there is no deadline of Lambda's; this is the timeout of the template.
pub const TIMEOUT_BY_HAND: Duration = Duration::from_secs(30);
