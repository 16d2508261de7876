//! The rounds that a batch takes: what of it can be claimed together.
//!
//! A key is claimed once at a time, and a lane keeps its order. So a round takes the front of each lane, up to the
//! first record whose key it has already, and the rest waits for another.

use std::collections::HashSet;

use crate::notify::item::Item;
use crate::notify::lanes::Lane;
use crate::notify::outcome::Outcome;
use crate::receive::PayloadHash;

pub(super) struct Rounds<'a> {
    lanes: Vec<Waiting<'a>>,
}

/// What of a lane has had no round yet.
struct Waiting<'a> {
    items: Lane<'a>,
    progress: Progress,
}

/// What of a lane has its round.
pub(super) struct Front<'l, 'a> {
    pub items: Vec<Item<'a>>,
    pub progress: &'l mut Progress,
}

/// How a lane stands, for those behind.
#[derive(Default)]
pub(super) struct Progress {
    /// One of its records stays on the queue, and so do those behind it.
    pub stuck: bool,
    /// The event before, if it was sent, or was before.
    handled: Option<Handled>,
}

/// An event whose email has left.
#[derive(PartialEq, Eq)]
struct Handled {
    key: String,
    event_type: String,
    payload_hash: PayloadHash,
}

impl<'a> Rounds<'a> {
    pub fn of(lanes: Vec<Lane<'a>>) -> Self {
        let waiting = |items| Waiting {
            items,
            progress: Progress::default(),
        };
        Self {
            lanes: lanes.into_iter().map(waiting).collect(),
        }
    }

    /// The next round; empty when there is nothing left.
    pub fn next(&mut self) -> Vec<Front<'_, 'a>> {
        let mut keys = HashSet::new();
        let fronts = self.lanes.iter_mut().map(|lane| {
            let together = lane.items.iter().take_while(|item| match &item.event {
                Ok(event) => keys.insert(event.key.as_str().to_owned()),
                Err(_) => true,
            });
            let together = together.count();
            Front {
                items: lane.items.drain(..together).collect(),
                progress: &mut lane.progress,
            }
        });
        fronts.filter(|front| !front.items.is_empty()).collect()
    }

    /// Takes from the front of each lane the messages about an event that was just handled, which the ledger need not be
    /// asked for.
    pub fn duplicates(&mut self) -> Vec<Item<'a>> {
        let mut duplicates = Vec::new();
        for Waiting { items, progress } in &mut self.lanes {
            let Some(handled) = &progress.handled else {
                continue;
            };
            let of_the_same = items
                .iter()
                .take_while(|item| Handled::of(item).as_ref() == Some(handled));
            let of_the_same = of_the_same.count();
            duplicates.extend(items.drain(..of_the_same));
        }
        duplicates
    }
}

impl Progress {
    /// After the record came to this.
    pub fn note(&mut self, item: &Item<'_>, outcome: &Outcome) {
        self.stuck |= item.holds_up(outcome);
        self.handled = match outcome {
            Outcome::Sent(_) | Outcome::Duplicate => Handled::of(item),
            _ => None,
        };
    }
}

impl Handled {
    fn of(item: &Item<'_>) -> Option<Self> {
        let event = item.event.as_ref().ok()?;
        Some(Self {
            key: event.key.as_str().to_owned(),
            event_type: event.event_type().to_owned(),
            payload_hash: event.payload_hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::notify::item::tests::{catalogue, indices, records};
    use crate::notify::lanes;
    use crate::notify::outcome::Release;

    use super::*;

    /// The indices of each round, if each record of it comes to this; and of the duplicates between.
    fn rounds_of(of: &[(&str, Option<&str>)], outcome: &Outcome) -> Vec<Vec<usize>> {
        let (catalogue, records) = (catalogue(), records(of));
        let mut rounds = Rounds::of(lanes::of(Item::read_all(&records, &catalogue, "")));
        let mut all = Vec::new();
        loop {
            let fronts = rounds.next();
            if fronts.is_empty() {
                return all;
            }
            all.push(indices(fronts.iter().flat_map(|front| &front.items)));
            for front in fronts {
                for item in &front.items {
                    front.progress.note(item, outcome);
                }
            }
            all.push(indices(&rounds.duplicates()));
        }
    }

    #[test]
    fn a_round_takes_no_key_twice_and_a_lane_keeps_its_order() {
        let fifo = [
            ("a", Some("1")),
            ("b", Some("1")),
            ("c", Some("2")),
            ("a", Some("2")),
            ("d", Some("2")),
        ];
        let rounds = rounds_of(&fifo, &Outcome::Skipped);
        assert_eq!(rounds, [vec![0, 1, 2], vec![], vec![3, 4], vec![]]);
    }

    #[test]
    fn what_is_behind_an_event_that_was_handled_takes_no_round() {
        let records = [("a", None), ("b", None), ("a", None), ("a", None)];
        let rounds = rounds_of(&records, &Outcome::Duplicate);
        assert_eq!(rounds, [vec![0, 1], vec![2, 3]]);
    }

    #[test]
    fn what_is_behind_an_event_that_was_not_handled_takes_rounds_of_its_own() {
        let records = [("a", None), ("b", None), ("a", None), ("a", None)];
        let rounds = rounds_of(&records, &Outcome::Released(Release::NoTime));
        let none = vec![];
        assert_eq!(
            rounds,
            [
                vec![0, 1],
                none.clone(),
                vec![2],
                none.clone(),
                vec![3],
                none
            ]
        );
    }
}
