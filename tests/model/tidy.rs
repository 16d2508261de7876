//! What differs in nothing that matters: names that stand for nothing else, and what has no effect any more.

use crate::attempt::Circumstances;
use crate::choices::Fences;
use crate::design::Design;
use crate::few::Few;
use crate::state::{Answer, Event, Fence, Phase, Row, State, Statement, Task};

pub fn tidied(design: &Design, mut state: State) -> State {
    for task in state.workers.iter_mut().flatten() {
        if !is_asking(task) {
            task.claimed = Circumstances::default();
        }
    }
    for event in design.events() {
        let Event {
            row,
            requests,
            statements,
            ..
        } = state.event_mut(event);
        *requests = requests.sorted();
        if *row == Row::Sent {
            // It stays so, and no statement that is late changes anything.
            *statements = Few::NONE;
        }
        if design.fences == Fences::Unique {
            Numbers::default().give(&mut state, event);
        }
        let statements = &mut state.event_mut(event).statements;
        *statements = statements.sorted();
    }
    state
}

/// Whether an email may yet come of it that isn't on its way: until then a task knows how it was claimed.
fn is_asking(task: &Task) -> bool {
    matches!(
        task.phase,
        Phase::Won | Phase::Claimed | Phase::Composed | Phase::Sending(Answer::NotYet)
    )
}

/// Numbers of attempts only say which are the same.
#[derive(Default)]
struct Numbers {
    given: Vec<Fence>,
}

impl Numbers {
    fn give(mut self, state: &mut State, event: u8) {
        if let Row::Sending(fence, _) | Row::Unknown(fence) = &mut state.event_mut(event).row {
            self.renew(fence);
        }
        for task in state.workers.iter_mut().flatten() {
            if task.event == event && task.fence != 0 {
                self.renew(&mut task.fence);
            }
        }
        for statement in state.event_mut(event).statements.iter_mut() {
            match statement {
                Statement::Claim(_, fence)
                | Statement::Settle(fence)
                | Statement::Release(fence)
                | Statement::Doubt(fence) => self.renew(fence),
            }
        }
    }

    fn renew(&mut self, fence: &mut Fence) {
        let place = self.given.iter().position(|given| given == fence);
        let place = place.unwrap_or_else(|| {
            self.given.push(*fence);
            self.given.len() - 1
        });
        *fence = u8::try_from(place + 1).expect("fewer than 256 attempts are remembered");
    }
}
