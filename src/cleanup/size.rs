//! How much a batch takes: as many rows, or blocks, as keep it short on the database at hand.

use std::time::Duration;

/// A batch that lasts so long is worth its round trip, and nobody notices it.
const TARGET: Duration = Duration::from_millis(50);
const FIRST: u32 = 500;
const LEAST: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    count: u32,
    most: u32,
}

impl Size {
    pub fn at_most(most: u32) -> Self {
        Self {
            count: FIRST.min(most),
            most,
        }
    }

    pub fn get(self) -> i64 {
        self.count.into()
    }

    /// After a batch that took so long: up to twice as many, or half.
    pub fn adapt(&mut self, took: Duration) {
        let factor = TARGET.as_secs_f64() / took.as_secs_f64().max(0.001);
        let count = f64::from(self.count) * factor.clamp(0.5, 2.0);
        self.count = (count as u32).clamp(LEAST.min(self.most), self.most);
    }

    /// After a batch that took too long to be done at all. False: it can't be smaller.
    pub fn shrink(&mut self) -> bool {
        let smaller = (self.count / 4).max(LEAST);
        let shrunk = smaller < self.count;
        self.count = smaller.min(self.count);
        shrunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_grows_while_it_is_quick_and_shrinks_when_it_is_slow() {
        let mut size = Size::at_most(5000);
        for _ in 0..10 {
            size.adapt(Duration::from_millis(1));
        }
        assert_eq!(size.get(), 5000);
        size.adapt(Duration::from_millis(75));
        assert_eq!(size.get(), 3333);
        size.adapt(Duration::from_secs(1));
        assert_eq!(size.get(), 1666);
        size.adapt(TARGET);
        assert_eq!(size.get(), 1666);
    }

    #[test]
    fn a_batch_that_cannot_be_done_becomes_small_and_then_gives_up() {
        let mut size = Size::at_most(5000);
        assert!(size.shrink() && size.shrink() && size.shrink());
        assert_eq!(size.get(), 20);
        assert!(!size.shrink());
    }
}
