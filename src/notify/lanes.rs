//! Which records of a batch wait for one another.

use std::collections::HashMap;

use crate::emails::Catalogue;
use crate::queue::Record;
use crate::receive::{Event, Malformed};

/// A record and what it was read as.
pub(super) struct Item<'a> {
    /// Its place in the batch.
    pub index: usize,
    pub record: &'a Record,
    pub event: Result<Event<'a>, Malformed>,
}

/// Records that are handled one after another, in their order: those of one message group on a FIFO queue,
/// those of one key elsewhere.
pub(super) struct Lane<'a> {
    pub items: Vec<Item<'a>>,
}

#[derive(PartialEq, Eq, Hash)]
enum LaneKey<'a> {
    Group(&'a str),
    Event(String),
    Alone(usize),
}

pub(super) fn of<'a>(records: &'a [Record], catalogue: &'a Catalogue) -> Vec<Lane<'a>> {
    let mut lanes = Vec::<Lane<'a>>::new();
    let mut places = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        let event = Event::parse(record.body.as_deref(), catalogue);
        let key = match (&record.fifo_group, &event) {
            (Some(group), _) => LaneKey::Group(group),
            (None, Ok(event)) => LaneKey::Event(event.key.as_str().to_owned()),
            (None, Err(_)) => LaneKey::Alone(index),
        };
        let place = *places.entry(key).or_insert_with(|| {
            lanes.push(Lane { items: Vec::new() });
            lanes.len() - 1
        });
        lanes[place].items.push(Item {
            index,
            record,
            event,
        });
    }
    lanes
}
