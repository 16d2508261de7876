//! An operator, who decides what becomes of a row that is held, at any time, and perhaps wrongly.

use crate::design::Design;
use crate::state::{EventId, Message, Row};
use crate::step::{Next, Who};

pub fn next(next: &mut Next<'_>, event: EventId) {
    if let Row::Unknown(_) = next.now.event(event).row {
        next.decision("decides that it was sent", |state| {
            let of = state.event_mut(event);
            of.row = Row::Sent;
            of.taken_for_sent = true;
        });
        next.decision(
            "decides that it is to be sent again, and deletes the row",
            |state| {
                let of = state.event_mut(event);
                of.row = Row::Absent;
                of.resends += 1;
            },
        );
    }
    if next.design.decisions > 0 {
        redrive(next, event);
    }
}

/// As soon as the row is deleted, or later, or never; or without a decision, as when a whole queue is redriven.
fn redrive(next: &mut Next<'_>, event: EventId) {
    let Design { messages, .. } = *next.design;
    for (id, &of) in messages.iter().enumerate() {
        if of == event && next.now.messages[id] == Message::Dead {
            next.at_will(
                Who::Operator,
                "redrives a message from the dead-letter queue",
                |state| state.messages[id] = Message::Visible,
            );
        }
    }
}
