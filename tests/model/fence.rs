//! Attempts of lease mode are numbered, so that a statement that comes late is known to be of another attempt.

use crate::choices::Fences;
use crate::state::{EventId, Fence, Row, State, Statement};

/// The number of a new attempt.
pub fn new(state: &State, fences: Fences, event: EventId) -> Fence {
    let in_row = match state.event(event).row {
        Row::Sending(fence, _) | Row::Unknown(fence) => fence,
        Row::Absent | Row::Sent => 0,
    };
    match fences {
        Fences::None | Fences::OfTheBatch => 1,
        Fences::FromOne => in_row + 1,
        // The least that nobody remembers is as good as one that was never used, and keeps the states few.
        Fences::Unique => (1..)
            .find(|&fence| fence != in_row && !is_remembered(state, event, fence))
            .expect("fewer than 256 attempts are remembered"),
    }
}

fn is_remembered(state: &State, event: EventId, fence: Fence) -> bool {
    let by_statement = |statement: &Statement| match *statement {
        Statement::Claim(_, of)
        | Statement::Settle(of)
        | Statement::Release(of)
        | Statement::Doubt(of) => of == fence,
    };
    state.event(event).statements.iter().any(by_statement)
        || state.tasks_on(event).any(|task| task.fence == fence)
}
