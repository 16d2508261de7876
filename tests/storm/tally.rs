//! Counts by name.

use std::collections::BTreeMap;
use std::sync::Mutex;

#[derive(Default)]
pub struct Tally(Mutex<BTreeMap<String, u32>>);

impl Tally {
    /// One more of it; gives how many there were before.
    pub fn count(&self, what: &str) -> u32 {
        let mut counts = self.counts();
        let count = counts.entry(what.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    pub fn of(&self, what: &str) -> u32 {
        self.counts().get(what).copied().unwrap_or_default()
    }

    /// All that was counted, by name.
    pub fn all(&self) -> BTreeMap<String, u32> {
        self.counts().clone()
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u32>> {
        self.0.lock().expect("nobody panics here")
    }
}
