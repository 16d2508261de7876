//! `notify`: walks each record of a batch from the event to the settled email, and answers SQS.
//!
//! Each record is read as an `item`, and stands in one of the batch's `lanes`, in which records wait for one another.
//! Then there are two orders, with the same `dispatch` of an email and the same `ending` of a record, and with the time
//! that `budget` gives each step:
//!
//! | `transaction` | `lease` |
//! | --- | --- |
//! | for each record: claim and look up, in a transaction | for all records: claim, committed |
//! | | look up, in one round trip |
//! | dispatch | dispatch each |
//! | settle, in the same transaction | settle, in groups, as they are dispatched |

mod budget;
mod dispatch;
mod ending;
mod item;
mod lanes;
mod lease;
mod line;
mod outcome;
mod transaction;

pub use outcome::{Outcome, Refusal, Release};

use anyhow::Context as _;
use aws_lambda_events::sqs::SqsBatchResponse;
use serde_json::Value;

use crate::clock::Deadline;
use crate::config::{ClaimConfig, ClaimMode, MailConfig, NotifyConfig, RecipientPolicy};
use crate::database::Connections;
use crate::emails::Catalogue;
use crate::metrics::{Count, count_with_reason};
use crate::queue::{Answer, Batch, DeadLetters, Queue, each, until};
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
        if budget::started_by(deadline).left().is_zero() {
            tell_of_the_timeout();
        }
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

/// An invocation that begins with too little time has as much as each of them: what the function's timeout gives.
fn tell_of_the_timeout() {
    count_with_reason(Count::SetupErrors, "timeout");
    tracing::error!(
        least_s = budget::START.as_secs(),
        "the function's timeout leaves no time for any email: nothing is sent until it is raised, best to 30 s"
    );
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
}
