//! An exhaustive breadth-first search: every state that any order of steps can reach, each visited once.
//!
//! Written here rather than taken from a crate because of the second question that it answers: whether a goal can
//! still be reached from *every* state, by certain steps alone. That takes the whole graph, backwards. States are
//! compared whole, never by a fingerprint, so that none is skipped for a collision. Given the same protocol, the
//! model checker `stateright` 0.31 counts the same states and steps.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{Display, Formatter, Result};
use std::hash::{BuildHasherDefault, Hash};
use std::time::{Duration, Instant};

use crate::hasher::Quick;

/// Several times what is needed here. A protocol that has lost its hold on emails would go on for ever.
const MOST_STATES: usize = 1_500_000;

/// What can be searched.
pub trait System {
    type State: Copy + Eq + Hash;
    type Step: Copy + Display;

    fn start(&self) -> Self::State;

    /// What can happen next. A state without a next step is an end.
    fn next(&self, state: &Self::State) -> Vec<(Self::Step, Self::State)>;

    /// The one that stands for all states that differ from this one in names only: one of them is visited.
    fn representative(&self, state: &Self::State) -> Self::State;

    /// Whether nothing may rely on this step to get on.
    fn is_fault(step: &Self::Step) -> bool;
}

/// All that was reached.
pub struct Explored<S: System> {
    states: Vec<S::State>,
    /// For each state but the first, the state that it was first reached from, and how.
    reached: Vec<Option<(usize, S::Step)>>,
    /// From, to; without the faults.
    reliable: Vec<(u32, u32)>,
    steps: usize,
    took: Duration,
}

/// A shortest way to a state.
pub struct Trace<S: System> {
    pub steps: Vec<S::Step>,
}

impl<S: System> Explored<S> {
    pub fn all(system: &S) -> Self {
        let begun = Instant::now();
        let start = system.start();
        let mut explored = Self {
            states: vec![start],
            reached: vec![None],
            reliable: Vec::new(),
            steps: 0,
            took: Duration::ZERO,
        };
        let mut numbers: HashMap<S::State, usize, BuildHasherDefault<Quick>> = HashMap::default();
        numbers.insert(system.representative(&start), 0);
        let mut from = 0;
        while from < explored.states.len() {
            assert!(
                from < MOST_STATES,
                "a broken protocol, or too much may go wrong at once"
            );
            for (step, state) in system.next(&explored.states[from]) {
                let to = match numbers.entry(system.representative(&state)) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        // As it was reached, not as its representative: a trace keeps its names.
                        explored.states.push(state);
                        explored.reached.push(Some((from, step)));
                        *new.insert(explored.states.len() - 1)
                    }
                };
                explored.steps += 1;
                if !S::is_fault(&step) {
                    explored.reliable.push((narrow(from), narrow(to)));
                }
            }
            from += 1;
        }
        explored.took = begun.elapsed();
        explored
    }

    /// A nearest state in which `holds` doesn't hold.
    pub fn breach(&self, holds: impl Fn(&S::State) -> bool) -> Option<Trace<S>> {
        let found = self.states.iter().position(|state| !holds(state))?;
        Some(self.trace(found))
    }

    /// A nearest state from which no number of reliable steps leads to a state in `goal`.
    pub fn trap(&self, goal: impl Fn(&S::State) -> bool) -> Option<Trace<S>> {
        let mut leads: Vec<bool> = self.states.iter().map(goal).collect();
        // Backwards, since most steps lead on to states that were found later: a few rounds do.
        let mut is_growing = true;
        while is_growing {
            is_growing = false;
            for &(from, to) in self.reliable.iter().rev() {
                if leads[to as usize] && !leads[from as usize] {
                    leads[from as usize] = true;
                    is_growing = true;
                }
            }
        }
        let found = leads.iter().position(|leads| !leads)?;
        Some(self.trace(found))
    }

    fn trace(&self, state: usize) -> Trace<S> {
        let mut steps = Vec::new();
        let mut at = state;
        while let Some((from, step)) = self.reached[at] {
            steps.push(step);
            at = from;
        }
        steps.reverse();
        Trace { steps }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("no more than MOST_STATES")
}

impl<S: System> Display for Explored<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (states, steps, seconds) = (self.states.len(), self.steps, self.took.as_secs_f64());
        write!(f, "{states:7} states, {steps:7} steps, {seconds:5.2} s")
    }
}

impl<S: System> Display for Trace<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {:2} {step}", number + 1)?;
        }
        Ok(())
    }
}

/// A counter that goes up by one or two as far as ten, and that a fault sets back to nought.
struct Counter;

impl System for Counter {
    type State = u8;
    type Step = &'static str;

    fn start(&self) -> u8 {
        0
    }

    fn next(&self, state: &u8) -> Vec<(&'static str, u8)> {
        let steps = [("one", state + 1), ("two", state + 2), ("fault", 0)];
        steps.into_iter().filter(|(_, to)| *to <= 10).collect()
    }

    fn representative(&self, state: &u8) -> u8 {
        *state
    }

    fn is_fault(step: &&'static str) -> bool {
        *step == "fault"
    }
}

#[test]
fn the_checker_visits_every_state_once() {
    let explored = Explored::all(&Counter);
    assert_eq!(explored.states.len(), 11);
    assert_eq!(explored.steps, 10 + 9 + 11);
    assert!(explored.breach(|state| *state <= 10).is_none());
}

#[test]
fn the_checker_finds_a_shortest_way_to_a_breach() {
    let breach = Explored::all(&Counter)
        .breach(|state| *state < 5)
        .expect("five is reached");
    assert_eq!(breach.steps.len(), 3);
}

#[test]
fn the_checker_finds_a_state_that_only_a_fault_leads_out_of() {
    let explored = Explored::all(&Counter);
    assert!(explored.trap(|state| *state == 10).is_none());
    let trap = explored
        .trap(|state| *state == 9)
        .expect("ten leads to nine by a fault alone");
    assert_eq!(trap.steps.len(), 5);
}
