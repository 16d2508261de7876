//! When a failed message comes back.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use aws_sdk_sqs::types::ChangeMessageVisibilityBatchRequestEntry;
use futures_util::FutureExt as _;
use futures_util::future::join_all;

use crate::causes::told;
use crate::clock::Deadline;

use super::client::Queue;
use super::record::Record;

/// After the first failure.
const FIRST: Duration = Duration::from_secs(30);
/// After many.
const MOST: Duration = Duration::from_secs(900);
/// SQS's limit is twelve hours from the receive, of which an invocation may have taken a quarter of one:
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html>.
const LIMIT: Duration = Duration::from_secs(43_200 - 900);
/// Entries of one request to SQS.
const MOST_ENTRIES: usize = 10;

/// Doubles with each receive; up to a quarter is taken off at random, so that what failed together doesn't
/// come back together.
pub fn backoff(receive_count: u32) -> Duration {
    let doublings = receive_count.saturating_sub(1).min(16);
    let delay = FIRST.saturating_mul(1 << doublings).min(MOST);
    delay.mul_f64(1.0 - fastrand::f64() / 4.0)
}

/// A failed message and when SQS may hand it out again.
pub struct ComeBack<'a> {
    pub record: &'a Record,
    pub after: Duration,
}

impl Queue {
    /// Tells SQS when the messages come back. If it can't be told, they come back at the queue's own visibility
    /// timeout, so a failure here is no failure of theirs.
    pub async fn bring_back(&self, messages: &[ComeBack<'_>], deadline: Deadline) {
        // All records of an invocation come from one queue.
        let Some(arn) = messages
            .iter()
            .find_map(|message| message.record.queue_arn.as_deref())
        else {
            return;
        };
        let work = async {
            let url = self.url_of(arn).await?;
            let requests = messages
                .chunks(MOST_ENTRIES)
                .map(|messages| self.change(&url, messages));
            join_all(requests).await.into_iter().collect()
        };
        // The SDK panics over a variable of its own that is set to nothing; the answer shall not suffer for it.
        let work = AssertUnwindSafe(work).catch_unwind();
        let done: Result<(), String> = match tokio::time::timeout(deadline.left(), work).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err("the SDK panicked".to_owned()),
            Err(_) => Err("no answer in time".to_owned()),
        };
        if let Err(cause) = done {
            tracing::info!(
                messages = messages.len(),
                cause,
                "SQS could not be told when to hand out the failed messages again; \
                 they come back at the queue's visibility timeout"
            );
        }
    }

    async fn url_of(&self, arn: &str) -> Result<String, String> {
        // arn:aws:sqs:REGION:ACCOUNT:NAME
        let mut parts = arn.rsplit(':');
        let (name, account) = (parts.next(), parts.next());
        let answer = self
            .client()
            .get_queue_url()
            .set_queue_name(name.map(str::to_owned))
            .set_queue_owner_aws_account_id(account.map(str::to_owned))
            .send()
            .await
            .map_err(|error| told(&error))?;
        answer
            .queue_url
            .ok_or_else(|| "SQS named no URL".to_owned())
    }

    async fn change(&self, url: &str, messages: &[ComeBack<'_>]) -> Result<(), String> {
        let mut request = self
            .client()
            .change_message_visibility_batch()
            .queue_url(url);
        for (index, message) in messages.iter().enumerate() {
            // Rounded up: a message that comes back early would use up a receive.
            let seconds = message.after.min(LIMIT).as_secs_f64().ceil() as i32;
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(index.to_string())
                .set_receipt_handle(message.record.receipt_handle.clone())
                .visibility_timeout(seconds)
                .build()
                .map_err(|error| error.to_string())?;
            request = request.entries(entry);
        }
        let answer = request.send().await.map_err(|error| told(&error))?;
        match answer.failed.first() {
            Some(failed) => Err(format!("SQS answered {}", failed.code)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(receive_count: u32) -> (Duration, Duration) {
        let delays = (0..1000).map(|_| backoff(receive_count));
        let delays = delays.collect::<Vec<_>>();
        (*delays.iter().min().unwrap(), *delays.iter().max().unwrap())
    }

    #[test]
    fn the_delay_doubles_up_to_a_quarter_of_an_hour_and_is_jittered() {
        for (receive_count, longest) in [(0, 30), (1, 30), (2, 60), (3, 120), (6, 900), (400, 900)]
        {
            let (least, most) = bounds(receive_count);
            let longest = Duration::from_secs(longest);
            assert!(most <= longest, "{most:?}");
            assert!(least >= longest * 3 / 4, "{least:?}");
            assert!(least < most);
        }
    }
}
