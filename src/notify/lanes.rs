//! Which records of a batch wait for one another.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::claim::Candidate;
use crate::emails::Catalogue;
use crate::queue::Record;
use crate::receive::{Event, Malformed, PayloadHash};

use super::line::Line;
use super::outcome::{Outcome, Refusal, Release};

/// A record and what it was read as.
pub(super) struct Item<'a> {
    /// Its place in the batch.
    pub index: usize,
    pub record: &'a Record,
    pub event: Result<Event<'a>, Unread>,
    pub line: Line,
}

/// Why a record was not read as an event.
#[derive(Debug)]
pub(super) enum Unread {
    Malformed(Malformed),
    /// A fault of ours.
    Panicked,
}

/// Records that are handled one after another, in their order: those of one message group on a FIFO queue,
/// those of one key elsewhere.
pub(super) struct Lane<'a> {
    pub items: Vec<Item<'a>>,
    /// One of its records stays on the queue, and so do those behind it.
    pub stuck: bool,
    /// The last event of it that was sent, or was before.
    pub handled: Option<Handled>,
}

/// An event whose email has left.
#[derive(PartialEq, Eq)]
pub(super) struct Handled {
    key: String,
    event_type: String,
    payload_hash: PayloadHash,
}

/// The records at the front of a lane that can be claimed together with those of other lanes.
pub(super) struct Front<'l, 'a> {
    pub items: Vec<Item<'a>>,
    /// The lane's.
    pub stuck: &'l mut bool,
    pub handled: &'l mut Option<Handled>,
}

impl<'a> Item<'a> {
    pub fn candidate(&self) -> Option<Candidate<'_>> {
        Some(Candidate {
            event: self.event.as_ref().ok()?,
            message_id: self.record.message_id.as_ref(),
        })
    }

    /// The event's key; empty for what is no event.
    pub fn key(&self) -> &str {
        self.event.as_ref().map_or("", |event| event.key.as_str())
    }

    /// What those behind it know by this outcome.
    pub fn handled(&self, outcome: &Outcome) -> Option<Handled> {
        matches!(outcome, Outcome::Sent(_) | Outcome::Duplicate)
            .then(|| Handled::of(self.event.as_ref().ok()))
            .flatten()
    }

    /// Whether, after this outcome, those behind it have to wait. Off FIFO, an event that can never be sent says
    /// nothing of another with its key.
    pub fn holds_up(&self, outcome: &Outcome) -> bool {
        !outcome.is_done()
            && (self.record.fifo_group.is_some() || !matches!(outcome, Outcome::Refused(_)))
    }
}

impl From<&Unread> for Outcome {
    fn from(unread: &Unread) -> Self {
        match unread {
            Unread::Malformed(malformed) => Self::Refused(Refusal::Malformed(malformed.clone())),
            Unread::Panicked => Self::Released(Release::Panicked),
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
enum LaneKey<'a> {
    Group(&'a str),
    Event(String),
    Alone(usize),
}

pub(super) fn of<'a>(
    records: &'a [Record],
    catalogue: &'a Catalogue,
    request_id: &str,
) -> Vec<Lane<'a>> {
    let mut lanes = Vec::<Lane<'a>>::new();
    let mut places = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        let event = read(record, catalogue);
        let key = match (&record.fifo_group, &event) {
            (Some(group), _) => LaneKey::Group(group),
            (None, Ok(event)) => LaneKey::Event(event.key.as_str().to_owned()),
            (None, Err(_)) => LaneKey::Alone(index),
        };
        let place = *places.entry(key).or_insert_with(|| {
            lanes.push(Lane {
                items: Vec::new(),
                stuck: false,
                handled: None,
            });
            lanes.len() - 1
        });
        lanes[place].items.push(Item {
            index,
            record,
            line: Line::new(record, event.as_ref().ok(), request_id),
            event,
        });
    }
    lanes
}

impl Handled {
    fn of(event: Option<&Event<'_>>) -> Option<Self> {
        event.map(|event| Self {
            key: event.key.as_str().to_owned(),
            event_type: event.event_type().to_owned(),
            payload_hash: event.payload_hash,
        })
    }
}

/// Takes from the front of each lane the messages about an event that was just handled, which the ledger need not be
/// asked for.
pub(super) fn duplicates<'a>(lanes: &mut [Lane<'a>]) -> Vec<Item<'a>> {
    let mut duplicates = Vec::new();
    for lane in lanes.iter_mut().filter(|lane| lane.handled.is_some()) {
        let of_the_same = lane.items.iter().take_while(|item| {
            let event = item.event.as_ref().ok();
            Handled::of(event) == lane.handled
        });
        let of_the_same = of_the_same.count();
        duplicates.extend(lane.items.drain(..of_the_same));
    }
    duplicates
}

/// Takes from each lane what can be claimed together: up to the first record whose key is taken already.
pub(super) fn fronts<'l, 'a>(lanes: &'l mut [Lane<'a>]) -> Vec<Front<'l, 'a>> {
    let mut keys = HashSet::new();
    let fronts = lanes.iter_mut().map(|lane| {
        let together = lane.items.iter().take_while(|item| match &item.event {
            Ok(event) => keys.insert(event.key.as_str().to_owned()),
            Err(_) => true,
        });
        let together = together.count();
        Front {
            items: lane.items.drain(..together).collect(),
            stuck: &mut lane.stuck,
            handled: &mut lane.handled,
        }
    });
    fronts.filter(|front| !front.items.is_empty()).collect()
}

/// A fault of ours that one record brings to light must not touch its neighbours.
fn read<'a>(record: &Record, catalogue: &'a Catalogue) -> Result<Event<'a>, Unread> {
    let parse = || Event::parse(record.body.as_deref(), catalogue);
    match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(event) => event.map_err(Unread::Malformed),
        Err(_) => Err(Unread::Panicked),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::queue::Batch;

    use super::*;

    /// A folder whose key panics for the id `panic`.
    fn catalogue() -> Catalogue {
        Catalogue::load(&[
            (
                "test.event/email.toml",
                "idempotency_key = \"{{ event_id | panic_if_asked }}\"\n[fields]\nevent_id = { type = \"key\" }\n",
            ),
            ("test.event/recipient.sql", "SELECT 1"),
            ("test.event/subject.txt", "subject"),
            ("test.event/body.html", "html"),
            ("test.event/body.txt", "text"),
        ])
        .unwrap()
    }

    fn records(of: &[(&str, Option<&str>)]) -> Vec<Record> {
        let records = of
            .iter()
            .map(|(event_id, group)| {
                json!({
                    "messageId": "m",
                    "body": json!({ "type": "test.event", "event_id": event_id }).to_string(),
                    "attributes": { "MessageGroupId": group },
                    "eventSourceARN": if group.is_some() { "arn:queue.fifo" } else { "arn:queue" },
                })
            })
            .collect::<Vec<_>>();
        Batch::parse(json!({ "Records": records })).unwrap().records
    }

    fn indices(lanes: &[Lane<'_>]) -> Vec<Vec<usize>> {
        lanes
            .iter()
            .map(|lane| lane.items.iter().map(|item| item.index).collect())
            .collect()
    }

    #[test]
    fn records_of_one_key_share_a_lane_and_others_run_beside_them() {
        let catalogue = catalogue();
        let records = records(&[("a", None), ("b", None), ("a", None)]);
        assert_eq!(
            indices(&of(&records, &catalogue, "")),
            [vec![0, 2], vec![1]]
        );
    }

    #[test]
    fn on_a_fifo_queue_the_group_is_the_lane() {
        let catalogue = catalogue();
        let records = records(&[("a", Some("1")), ("a", Some("2")), ("b", Some("1"))]);
        assert_eq!(
            indices(&of(&records, &catalogue, "")),
            [vec![0, 2], vec![1]]
        );
    }

    #[test]
    fn a_panic_while_a_record_is_read_does_not_touch_its_neighbours() {
        let catalogue = catalogue();
        let records = records(&[("a", None), ("panic", None), ("b", None)]);
        let lanes = of(&records, &catalogue, "");
        let read = lanes
            .iter()
            .flat_map(|lane| &lane.items)
            .map(|item| item.event.is_ok())
            .collect::<Vec<_>>();
        assert_eq!(read, [true, false, true]);
        assert!(matches!(lanes[1].items[0].event, Err(Unread::Panicked)));
    }
}
