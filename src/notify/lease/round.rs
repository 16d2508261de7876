//! Claim, send, settle: once, for all records that can be handled together.

use futures_util::future::join;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;

use crate::claim::{Attempt, Row};
use crate::notify::dispatch::Dispatched;
use crate::notify::item::Item;
use crate::notify::outcome::{Outcome, Release};
use crate::notify::{Invocation, budget};
use crate::queue::Answer;
use crate::send::Cause;

use super::rounds::Front;

/// How a record stands when the sending begins.
pub(super) enum Turn {
    /// Its key is ours, and this was found for it. Its row must be settled.
    Ours(Result<Vec<Row>, Outcome>),
    /// Its key is not ours, or it has none.
    Ended(Outcome),
}

/// A record that is done but for its row.
pub(super) struct ToSettle<'a> {
    pub item: Item<'a>,
    pub dispatched: Dispatched,
    /// Told once the row is written, where the lane waits for it. Dropped, it isn't, or not soon.
    pub lane: Option<oneshot::Sender<()>>,
}

impl Invocation<'_> {
    /// Returns when all of it is settled.
    pub(super) async fn round(&self, fronts: Vec<Front<'_, '_>>, answer: &Answer) {
        let attempt = Attempt::new();
        let items: Vec<&Item<'_>> = fronts.iter().flat_map(|front| &front.items).collect();
        let mut turns = self.claim(attempt, &items).await;
        self.look_up(attempt, &items, &mut turns).await;
        let lanes = with_turns(fronts, turns);
        let (done, to_settle) = mpsc::unbounded_channel();
        let sent = self.send_all(lanes, done, answer);
        let settled = self.settle(attempt, to_settle, answer);
        join(sent, settled).await;
    }

    /// As many lanes at once as emails may be in flight. `done` is dropped at their end, which is the settler's end too.
    async fn send_all<'a>(
        &self,
        lanes: Vec<(Front<'_, 'a>, Vec<Turn>)>,
        done: UnboundedSender<ToSettle<'a>>,
        answer: &Answer,
    ) {
        let send = |(front, turns)| self.send_lane(front, turns, &done, answer);
        self.each(lanes, send).await;
    }

    /// One after another; once a record stays on the queue, the rest of the lane does too.
    async fn send_lane<'a>(
        &self,
        front: Front<'_, 'a>,
        turns: Vec<Turn>,
        done: &UnboundedSender<ToSettle<'a>>,
        answer: &Answer,
    ) {
        let behind_a_failure = || Outcome::Released(Release::BehindAFailure);
        // Then there is still time to release the row.
        let by = budget::sent_by(self.deadline);
        for (mut item, turn) in front.items.into_iter().zip(turns) {
            item.line.begin();
            match turn {
                Turn::Ended(outcome) => {
                    let outcome = if front.progress.stuck {
                        behind_a_failure()
                    } else {
                        outcome
                    };
                    let outcome = self.give_up(&item, outcome, by).await;
                    front.progress.note(&item, &outcome);
                    self.finish(item, &outcome, answer);
                }
                Turn::Ours(found) => {
                    let dispatched = match found {
                        _ if front.progress.stuck => Dispatched::NotSent(behind_a_failure()),
                        Ok(rows) => self.send(&mut item, &rows, answer).await,
                        Err(outcome) => Dispatched::NotSent(outcome),
                    };
                    let dispatched = match dispatched {
                        Dispatched::NotSent(outcome) => {
                            Dispatched::NotSent(self.give_up(&item, outcome, by).await)
                        }
                        dispatched => dispatched,
                    };
                    let outcome = dispatched.outcome();
                    front.progress.note(&item, &outcome);
                    // Without its row it comes back, and in a FIFO group nothing may overtake it.
                    let is_awaited = item.record.fifo_group.is_some()
                        && matches!(dispatched, Dispatched::Skipped | Dispatched::Withheld);
                    let (lane, row) = oneshot::channel();
                    // The other end lives until all lanes are at their end.
                    let _ = done.send(ToSettle {
                        item,
                        dispatched,
                        lane: is_awaited.then_some(lane),
                    });
                    if is_awaited {
                        front.progress.stuck |= row.await.is_err();
                    }
                }
            }
        }
    }

    async fn send(&self, item: &mut Item<'_>, rows: &[Row], answer: &Answer) -> Dispatched {
        let start_by = budget::started_by(self.deadline);
        if start_by.left().is_zero() || self.notifier.pace.turn(start_by).await.is_err() {
            return Dispatched::NotSent(Outcome::Released(Release::NoTime));
        }
        let Ok(event) = &item.event else {
            let cause = Cause::new("unread", "a record that is no event was claimed");
            return Dispatched::Unknown(cause);
        };
        // The lease outlives the invocation.
        let claim_holds = || true;
        // From SES's acceptance on nothing may fail the record.
        let on_accepted = || answer.done(item.index);
        self.dispatch(event, rows, &mut item.line, claim_holds, on_accepted)
            .await
    }
}

/// Turns are in the order of the records.
fn with_turns<'l, 'a>(
    fronts: Vec<Front<'l, 'a>>,
    turns: Vec<Turn>,
) -> Vec<(Front<'l, 'a>, Vec<Turn>)> {
    let mut turns = turns.into_iter();
    let with_turns = |front: Front<'l, 'a>| {
        let turns = turns.by_ref().take(front.items.len()).collect();
        (front, turns)
    };
    fronts.into_iter().map(with_turns).collect()
}
