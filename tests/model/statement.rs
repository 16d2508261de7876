//! What a statement of lease mode does when it runs, perhaps long after its worker is gone.

use crate::choices::Settles;
use crate::claim::{self, Found};
use crate::design::Design;
use crate::state::{EventId, InDoubt, Lease, Row, State, Statement};

pub fn run(state: &mut State, design: &Design, event: EventId, statement: Statement) {
    let row = state.event(event).row;
    let number = match row {
        Row::Sending(fence, _) | Row::Unknown(fence) => Some(fence),
        Row::Absent | Row::Sent => None,
    };
    match statement {
        Statement::Claim(in_doubt, of) => claim(state, event, in_doubt, of),
        Statement::Settle(of) => {
            let fits = design.settles == Settles::OfAnyAttempt || number == Some(of);
            if number.is_some() && fits {
                state.event_mut(event).row = Row::Sent;
            }
        }
        Statement::Release(of) => {
            if matches!(row, Row::Sending(fence, _) if fence == of) {
                state.event_mut(event).row = Row::Absent;
            }
        }
        Statement::Doubt(of) => {
            if let Row::Sending(fence, lease) = &mut state.event_mut(event).row
                && *fence == of
            {
                *lease = Lease::RanOut;
            }
        }
    }
}

/// A mark isn't looked at: the statement's snapshot may be from before it. With a later snapshot it would do
/// nothing, as one that never arrives.
fn claim(state: &mut State, event: EventId, in_doubt: InDoubt, number: u8) {
    match claim::found(state.event(event).row, false, in_doubt) {
        Found::Free => state.event_mut(event).row = Row::Sending(number, Lease::Live),
        Found::ToBeHeld => claim::hold(state, event),
        _ => {}
    }
}
