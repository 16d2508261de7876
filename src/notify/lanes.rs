//! Which records of a batch wait for one another. All others are handled side by side.

use std::collections::HashMap;

use super::item::Item;
use super::outcome::Outcome;

/// Records that are handled one after another, in their order: those of one message group on a FIFO queue, those of one
/// key elsewhere. Once one of them stays on the queue, those behind it do too.
pub(super) type Lane<'a> = Vec<Item<'a>>;

#[derive(PartialEq, Eq, Hash)]
enum LaneKey<'a> {
    Group(&'a str),
    Event(String),
    Alone(usize),
}

pub(super) fn of(items: Vec<Item<'_>>) -> Vec<Lane<'_>> {
    let mut lanes = Vec::<Lane<'_>>::new();
    let mut places = HashMap::new();
    for item in items {
        let place = *places.entry(LaneKey::of(&item)).or_insert_with(|| {
            lanes.push(Lane::new());
            lanes.len() - 1
        });
        lanes[place].push(item);
    }
    lanes
}

impl<'a> LaneKey<'a> {
    fn of(item: &Item<'a>) -> Self {
        match (&item.record.fifo_group, &item.event) {
            (Some(group), _) => Self::Group(group),
            (None, Ok(event)) => Self::Event(event.key.as_str().to_owned()),
            (None, Err(_)) => Self::Alone(item.index),
        }
    }
}

impl Item<'_> {
    /// Whether, after this outcome, those behind it in its lane have to wait. Off FIFO, an event that can never be sent
    /// says nothing of another with its key.
    pub fn holds_up(&self, outcome: &Outcome) -> bool {
        !outcome.is_done()
            && (self.record.fifo_group.is_some() || !matches!(outcome, Outcome::Refused(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::{catalogue, indices, records};

    use super::*;

    fn lanes_of(of: &[(&str, Option<&str>)]) -> Vec<Vec<usize>> {
        let (catalogue, records) = (catalogue(), records(of));
        let lanes = super::of(Item::read_all(&records, &catalogue, ""));
        lanes.iter().map(indices).collect()
    }

    #[test]
    fn records_of_one_key_share_a_lane_and_others_run_beside_them() {
        let lanes = lanes_of(&[("a", None), ("b", None), ("a", None)]);
        assert_eq!(lanes, [vec![0, 2], vec![1]]);
    }

    #[test]
    fn on_a_fifo_queue_the_group_is_the_lane() {
        let lanes = lanes_of(&[("a", Some("1")), ("a", Some("2")), ("b", Some("1"))]);
        assert_eq!(lanes, [vec![0, 2], vec![1]]);
    }
}
