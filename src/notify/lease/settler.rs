//! The rows of a round are settled as the results come in.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout, timeout_at};

use crate::claim::{Attempt, Locked, Settled, Settling, Written};
use crate::clock::Deadline;
use crate::database::{DatabaseError, DatabaseVerdict};
use crate::metrics::{Time, timed};
use crate::notify::dispatch::Dispatched;
use crate::notify::outcome::{Outcome, Release};
use crate::notify::{Invocation, budget};
use crate::queue::Answer;
use crate::settle::settle_group;

use super::round::ToSettle;

/// For how long the first result waits for others to share its statement. The sends of a batch end together, mostly;
/// one that takes seconds must not keep back what is known of the others, since a crash would put them in doubt.
const GATHER: Duration = Duration::from_millis(200);
/// A row that couldn't be written waits so long for the next group.
const AGAIN: Duration = Duration::from_secs(1);
/// Or so long, when no group comes any more.
const PAUSE: Duration = Duration::from_millis(100);

impl Invocation<'_> {
    /// Until all lanes are at their end. While a group is written, the next one gathers. A row that can't be written
    /// yet is tried again with the next one, and until the deadline when nothing comes behind it any more.
    pub(super) async fn settle(
        &self,
        attempt: Attempt,
        mut results: UnboundedReceiver<ToSettle<'_>>,
        answer: &Answer,
    ) {
        let by = budget::settled_by(self.deadline);
        let mut left = Vec::new();
        loop {
            let patience = if left.is_empty() {
                Duration::MAX
            } else {
                AGAIN
            };
            match timeout(patience, results.recv()).await {
                Ok(Some(first)) => left.push(first),
                Ok(None) => break,
                Err(_) => {}
            }
            let gathered = Instant::now() + GATHER;
            while let Ok(Some(next)) = timeout_at(gathered, results.recv()).await {
                left.push(next);
            }
            left = self
                .settle_group(attempt, left, Locked::PassedOver, by, answer)
                .await;
        }
        while !left.is_empty() {
            tokio::time::sleep(by.left_at_most(PAUSE)).await;
            left = self
                .settle_group(attempt, left, Locked::PassedOver, by, answer)
                .await;
            // One after another is waited for, so that none which stays locked keeps the others from being written.
            if let Some(one) = left.pop() {
                let waiting = u32::try_from(left.len()).unwrap_or(u32::MAX);
                let share = (by.left() / waiting.saturating_add(1)).max(AGAIN);
                let share = Deadline::after(by.left_at_most(share));
                let one = self.settle_group(attempt, vec![one], Locked::WaitedFor, share, answer);
                left.splice(0..0, one.await);
            }
        }
    }

    /// Gives back what is to be tried again after `by`.
    async fn settle_group<'a>(
        &self,
        attempt: Attempt,
        group: Vec<ToSettle<'a>>,
        locked: Locked,
        by: Deadline,
        answer: &Answer,
    ) -> Vec<ToSettle<'a>> {
        let settling = settling(attempt, &group);
        let written = settle_group(&settling, locked, &self.notifier.connections, by);
        let written = timed(Time::Database, written).await;
        let time_is_left = !budget::settled_by(self.deadline).left().is_zero();
        let mut again = Vec::new();
        for done in group {
            if may_be_written_later(&written, done.item.key(), time_is_left) {
                again.push(ToSettle { lane: None, ..done });
                continue;
            }
            let failed = match &written {
                Ok(written) => written.failed.get(done.item.key()),
                Err(error) => Some(error),
            };
            tell(&done, &written, failed);
            let outcome = match (done.dispatched, failed) {
                // It comes back, and finds its row or makes it again.
                (Dispatched::Skipped | Dispatched::Withheld, Some(error)) => {
                    Outcome::Released(Release::from(error))
                }
                (dispatched, _) => dispatched.outcome(),
            };
            if let Some(lane) = done.lane
                && outcome.is_done()
            {
                // Its lane waits, or was cut off.
                let _ = lane.send(());
            }
            self.finish(done.item, &outcome, answer);
        }
        again
    }
}

/// Somebody has the row locked, or Postgres is in trouble that passes, or was until then.
fn may_be_written_later(
    written: &Result<Written, DatabaseError>,
    key: &str,
    time_is_left: bool,
) -> bool {
    let passes = |error: &DatabaseError| error.verdict() == DatabaseVerdict::Later;
    match written {
        Ok(written) if written.passed_over.contains(key) => true,
        Ok(written) => time_is_left && written.failed.get(key).is_some_and(passes),
        Err(_) => time_is_left,
    }
}

fn settling<'a>(attempt: Attempt, group: &'a [ToSettle<'_>]) -> Settling<'a> {
    let mut settling = Settling::of(attempt);
    for ToSettle {
        item, dispatched, ..
    } in group
    {
        let key = item.key();
        match dispatched {
            Dispatched::Sent(id) => settling.settled.push((key, Settled::Sent(id))),
            Dispatched::Skipped => settling.settled.push((key, Settled::Skipped)),
            Dispatched::Withheld => settling.settled.push((key, Settled::Withheld)),
            Dispatched::NotSent(_) => settling.released.push(key),
            Dispatched::Unknown(_) => settling.in_doubt.push(key),
        }
    }
    settling
}

/// What the record's own line doesn't say.
fn tell(
    done: &ToSettle<'_>,
    written: &Result<Written, DatabaseError>,
    failed: Option<&DatabaseError>,
) {
    let key = done.item.key();
    if let Some(error) = failed {
        return tell_of_failure(key, &done.dispatched, error);
    }
    let Ok(written) = written else { return };
    match &done.dispatched {
        Dispatched::Sent(id) if written.not_ours.contains(key) => tracing::warn!(
            event_id = key,
            ses_message_id = %id,
            "the email was sent, but its row is another attempt's by now, or gone; it is left as it is"
        ),
        // `feedback` tells of it as an error, and counts it.
        Dispatched::Sent(id) if written.other_email.contains(key) => tracing::warn!(
            event_id = key,
            ses_message_id = %id,
            "the ledger tells of another email: SES told of an earlier one of the same event meanwhile"
        ),
        Dispatched::NotSent(_) if written.not_ours.contains(key) => tracing::info!(
            event_id = key,
            "the row of what was not sent is another attempt's by now, or gone; it is left as it is"
        ),
        _ => {}
    }
}

fn tell_of_failure(key: &str, dispatched: &Dispatched, error: &DatabaseError) {
    match dispatched {
        Dispatched::Sent(id) => tracing::error!(
            event_id = key,
            ses_message_id = %id,
            code = error.code(),
            cause = error.cause(),
            "the email was sent, but that could not be written before the deadline; the message is acknowledged, and \
             its row is in doubt until SES's word comes"
        ),
        Dispatched::NotSent(_) => tracing::warn!(
            event_id = key,
            code = error.code(),
            cause = error.cause(),
            "the event was not sent, but its key could not be released; it is in doubt when its lease ends"
        ),
        Dispatched::Unknown(_) => tracing::warn!(
            event_id = key,
            code = error.code(),
            cause = error.cause(),
            "that a send is in doubt could not be written; it is in doubt when its lease ends"
        ),
        // It is released, and says why.
        Dispatched::Skipped | Dispatched::Withheld => {}
    }
}
