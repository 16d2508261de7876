//! `notify`: walks each record of a batch from the event to the settled email, and answers SQS.

mod answer;
mod budget;
mod lanes;
mod outcome;
mod record;

pub use answer::{Answer, Unreportable};
pub use outcome::{Outcome, Refusal, Release};

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

use crate::clock::Deadline;
use crate::config::{MailConfig, NotifyConfig, RecipientPolicy};
use crate::database::Connections;
use crate::emails::Catalogue;
use crate::receive::Batch;
use crate::send::{Mailer, Pace, Sender};

use lanes::Lane;

/// What a warm sandbox keeps between invocations.
pub struct Notifier {
    catalogue: Catalogue,
    connections: Connections,
    mailer: Mailer,
    mail: MailConfig,
    recipients: RecipientPolicy,
    pace: Pace,
    max_in_flight: usize,
}

/// What a record's walk borrows.
struct Invocation<'a> {
    notifier: &'a Notifier,
    sender: Sender<'a>,
    deadline: Deadline,
    request_id: &'a str,
}

impl Notifier {
    /// # Errors
    /// An email's folder is broken, or a root certificate can't be read.
    pub fn new(config: NotifyConfig, aws: &aws_config::SdkConfig) -> anyhow::Result<Self> {
        let max_in_flight = config.claim.max_in_flight.get();
        Ok(Self {
            catalogue: Catalogue::compiled_in()?,
            connections: Connections::new(&config.database, max_in_flight)?,
            mailer: Mailer::new(aws, config.mail.configuration_set.clone()),
            mail: config.mail,
            recipients: config.recipients,
            pace: Pace::new(config.claim.max_send_rate),
            max_in_flight,
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
    ) -> anyhow::Result<aws_lambda_events::sqs::SqsBatchResponse> {
        let batch = Batch::parse(payload)?;
        let answer = Answer::all_failed(&batch.records);
        let invocation = Invocation {
            notifier: self,
            sender: self.mailer.for_invocation(),
            deadline,
            request_id,
        };
        let work = stream::iter(lanes::of(&batch.records, &self.catalogue))
            .for_each_concurrent(self.max_in_flight, |lane| {
                invocation.walk_lane(lane, &answer)
            });
        let cutoff = deadline.keeping(budget::ANSWER);
        if tokio::time::timeout_at(cutoff.instant(), work)
            .await
            .is_err()
        {
            tracing::warn!(
                request_id,
                "the deadline came before the batch was done; what is not done is reported"
            );
        }
        answer
            .into_response()
            .context("The batch can't be answered record by record")
    }
}

impl Invocation<'_> {
    /// One after another; once a record stays on the queue, the rest of the lane does too.
    async fn walk_lane(&self, lane: Lane<'_>, answer: &Answer) {
        let mut stuck = false;
        for item in lane.items {
            let mut walk = record::Walk::new(self, &item);
            let outcome = if stuck {
                Outcome::Released(Release::BehindAFailure)
            } else {
                // From here on the email has left; it can't fail any more.
                let walked = AssertUnwindSafe(walk.run(&item, || answer.done(item.index)));
                walked
                    .catch_unwind()
                    .await
                    .unwrap_or(Outcome::Released(Release::Panicked))
            };
            if outcome.is_done() {
                answer.done(item.index);
            } else {
                stuck = true;
            }
            // Not even a fault in writing the line may touch the record or its neighbours.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| walk.log(&outcome)));
        }
    }
}

/// By hand there is no deadline of Lambda's; this is the timeout of the template.
pub const TIMEOUT_BY_HAND: Duration = Duration::from_secs(30);
