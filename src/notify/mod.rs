//! `notify`: walks each record of a batch from the event to the settled email, and answers SQS.

mod budget;
mod lanes;
mod line;
mod outcome;
mod record;

pub use outcome::{Outcome, Refusal, Release};

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::Context as _;
use aws_lambda_events::sqs::SqsBatchResponse;
use futures_util::FutureExt as _;
use serde_json::Value;

use crate::clock::Deadline;
use crate::config::{ClaimConfig, MailConfig, NotifyConfig, RecipientPolicy};
use crate::database::Connections;
use crate::emails::Catalogue;
use crate::queue::{Answer, Batch, DeadLetter, DeadLetters, Queue, until_done};
use crate::send::{Mailer, Pace, Sender};

use lanes::{Item, Lane, Unread};
use record::Walk;

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

/// What a record's walk borrows.
struct Invocation<'a> {
    notifier: &'a Notifier,
    sender: Sender<'a>,
    deadline: Deadline,
}

impl Notifier {
    /// # Errors
    /// An email's folder is broken, or a root certificate can't be read.
    pub fn new(config: NotifyConfig, aws: &aws_config::SdkConfig) -> anyhow::Result<Self> {
        let most_connections = config.claim.max_in_flight.get();
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
        until_done(
            lanes::of(&batch.records, &self.catalogue, request_id),
            self.claim.max_in_flight.get(),
            budget::cut_off(deadline),
            |lane| invocation.walk_lane(lane, &answer),
        )
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
    /// One after another; once a record stays on the queue, the rest of the lane does too.
    async fn walk_lane(&self, lane: Lane<'_>, answer: &Answer) {
        let mut stuck = false;
        for mut item in lane.items {
            item.line.begin();
            let mut outcome = if stuck {
                Outcome::Released(Release::BehindAFailure)
            } else {
                self.outcome(&mut item, answer).await
            };
            if let Outcome::Refused(refusal) = outcome {
                outcome = self.give_up(&item, refusal).await;
            }
            if outcome.is_done() {
                answer.done(item.index);
            } else {
                // Off FIFO, an event that can never be sent says nothing of another with its key.
                stuck |=
                    item.record.fifo_group.is_some() || !matches!(outcome, Outcome::Refused(_));
                let in_doubt_wait = self.notifier.claim.in_doubt_wait;
                let receive_count = item.record.receive_count;
                if let Some(after) = outcome.comes_back_after(receive_count, in_doubt_wait) {
                    answer.come_back(item.index, after);
                }
            }
            // Not even a fault in telling of it may touch the record or its neighbours.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| item.line.end(&outcome)));
        }
    }

    async fn outcome(&self, item: &mut Item<'_>, answer: &Answer) -> Outcome {
        let event = match &item.event {
            Ok(event) => event,
            Err(Unread::Malformed(malformed)) => {
                return Outcome::Refused(Refusal::Malformed(malformed.clone()));
            }
            Err(Unread::Panicked) => return Outcome::Released(Release::Panicked),
        };
        let walk = Walk {
            invocation: self,
            event,
            message_id: item.record.message_id.as_ref(),
        };
        // From SES's acceptance on nothing may fail the record.
        let on_accepted = || answer.done(item.index);
        let walked = AssertUnwindSafe(walk.run(&mut item.line, on_accepted)).catch_unwind();
        walked
            .await
            .unwrap_or_else(|_| item.line.cut_short(Release::Panicked))
    }

    /// Moves an event that can never be sent to the dead-letter queue, if there is one to move it to.
    async fn give_up(&self, item: &Item<'_>, refusal: Refusal) -> Outcome {
        let Some(dead_letters) = &self.notifier.dead_letters else {
            return Outcome::Refused(refusal);
        };
        let detail = refusal.to_string();
        let letter = DeadLetter {
            record: item.record,
            reason: refusal.reason(),
            detail: &detail,
            event_id: item.event.as_ref().ok().map(|event| event.key.as_str()),
        };
        let put = dead_letters.put(&self.notifier.queue, &letter);
        let deadline = budget::settled_by(self.deadline);
        let cause = match tokio::time::timeout_at(deadline.instant(), put).await {
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
