//! A record of the batch, and what it was read as.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::claim::Candidate;
use crate::emails::Catalogue;
use crate::queue::Record;
use crate::receive::{Event, Malformed};

use super::line::Line;
use super::outcome::{Outcome, Refusal, Release};

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

impl<'a> Item<'a> {
    /// In their order.
    pub fn read_all(
        records: &'a [Record],
        catalogue: &'a Catalogue,
        request_id: &str,
    ) -> Vec<Self> {
        let read = |(index, record)| {
            let event = read(record, catalogue);
            Self {
                index,
                record,
                line: Line::new(record, event.as_ref().ok(), request_id),
                event,
            }
        };
        records.iter().enumerate().map(read).collect()
    }

    /// What a claim is made with.
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
}

impl From<&Unread> for Outcome {
    fn from(unread: &Unread) -> Self {
        match unread {
            Unread::Malformed(malformed) => Self::Refused(Refusal::Malformed(malformed.clone())),
            Unread::Panicked => Self::Released(Release::Panicked),
        }
    }
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
pub(super) mod tests {
    use serde_json::json;

    use crate::queue::Batch;

    use super::*;

    /// A folder whose key panics for the id `panic`.
    pub fn catalogue() -> Catalogue {
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

    /// Of these event ids, with a message group on a FIFO queue.
    pub fn records(of: &[(&str, Option<&str>)]) -> Vec<Record> {
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

    pub fn indices<'a>(items: impl IntoIterator<Item = &'a Item<'a>>) -> Vec<usize> {
        items.into_iter().map(|item| item.index).collect()
    }

    #[test]
    fn a_panic_while_a_record_is_read_does_not_touch_its_neighbours() {
        let catalogue = catalogue();
        let records = records(&[("a", None), ("panic", None), ("b", None)]);
        let items = Item::read_all(&records, &catalogue, "");
        let read = items
            .iter()
            .map(|item| item.event.is_ok())
            .collect::<Vec<_>>();
        assert_eq!(read, [true, false, true]);
        assert!(matches!(items[1].event, Err(Unread::Panicked)));
    }
}
