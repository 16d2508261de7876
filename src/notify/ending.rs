//! A record's end, the same in both modes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::clock::Deadline;
use crate::queue::{Answer, DeadLetter};

use super::Invocation;
use super::item::Item;
use super::outcome::Outcome;

impl Invocation<'_> {
    /// The record's end: what SQS is told of it, and its line.
    pub(super) fn finish(&self, mut item: Item<'_>, outcome: &Outcome, answer: &Answer) {
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
        let _ = catch_unwind(AssertUnwindSafe(|| item.line.end(outcome)));
    }

    /// Moves an event that can never be sent to the dead-letter queue, if there is one to move it to.
    pub(super) async fn give_up(&self, item: &Item<'_>, outcome: Outcome, by: Deadline) -> Outcome {
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
