//! The time that is left: an invocation ends at its deadline, whatever it is doing.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// The moment at which Lambda stops this invocation.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline that Lambda gives as wall-clock time; one that has passed leaves no time.
    pub fn at(deadline: SystemTime) -> Self {
        Self::after(
            deadline
                .duration_since(SystemTime::now())
                .unwrap_or_default(),
        )
    }

    /// A deadline so far from now.
    pub fn after(left: Duration) -> Self {
        Self(Instant::now() + left)
    }

    /// An earlier deadline, which keeps `reserve` for what must come afterwards.
    pub fn keeping(self, reserve: Duration) -> Self {
        Self(self.0.checked_sub(reserve).unwrap_or_else(Instant::now))
    }

    /// What is left until then; zero once it has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// What is left, but at most `limit`.
    pub fn left_at_most(self, limit: Duration) -> Duration {
        self.left().min(limit)
    }

    /// As an instant to wait for.
    pub fn instant(self) -> Instant {
        self.0
    }
}
