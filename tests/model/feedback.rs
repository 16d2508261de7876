//! `feedback`: SES's notification that it has accepted an email completes the claim, whatever became of the worker.

use crate::design::Notifications;
use crate::state::{EventId, Row};
use crate::step::{Next, Who};

/// A notification comes at any time after the email was accepted, and more than once. While a worker's transaction
/// holds the key it waits, and is tried again.
pub fn next(next: &mut Next<'_>, event: EventId) {
    if next.design.notifications == Notifications::None || next.now.is_locked(event) {
        return;
    }
    for place in 0..next.now.event(event).emails.len() {
        next.step(
            Who::Feedback,
            "processes SES's notification of the email",
            |state| {
                let of = state.event_mut(event);
                of.row = Row::Sent;
                of.emails.at(place).heard = true;
            },
        );
    }
}
