//! How long the storm lasts and what it is made of: `STORM_SEED`, `STORM_SECONDS` and `STORM_EVENTS`.

use std::time::Duration;

use crate::modes::Modes;

/// Short enough for every run of the tests, in each mode.
const SECONDS: u64 = 12;
/// What the function's workers handle on two cores, while they are killed all the time.
const EVENTS_A_SECOND: u64 = 24;

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub modes: Modes,
    pub seed: u64,
    /// While faults happen; the calm that follows lasts until the queues are empty.
    pub length: Duration,
    pub events: usize,
}

impl Settings {
    pub fn read(modes: Modes) -> Self {
        let seconds = number("STORM_SECONDS").unwrap_or(SECONDS).max(5);
        let events = number("STORM_EVENTS").unwrap_or(seconds * EVENTS_A_SECOND);
        Self {
            modes,
            seed: number("STORM_SEED").unwrap_or(1),
            length: Duration::from_secs(seconds),
            events: usize::try_from(events).expect("they fit into memory"),
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable)
        .ok()
        .filter(|value| !value.is_empty())?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable} is {value:?}, not a whole number")),
    )
}
