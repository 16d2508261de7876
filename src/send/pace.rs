//! No more emails a second than this sandbox may send.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::clock::Deadline;

/// Hands out moments at which an email may be sent, evenly spaced.
pub struct Pace {
    interval: Duration,
    next: Mutex<Option<Instant>>,
}

/// As good as never, and an instant that can be told.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// The turn would come too late; it was not taken.
#[derive(Debug, PartialEq, Eq)]
pub struct NoTurnInTime;

impl Pace {
    /// `None`: no limit.
    pub fn new(emails_a_second: Option<f64>) -> Self {
        Self {
            interval: emails_a_second.map_or(Duration::ZERO, |rate| {
                Duration::try_from_secs_f64(1.0 / rate)
                    .unwrap_or(LONGEST)
                    .min(LONGEST)
            }),
            next: Mutex::new(None),
        }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// The turn would come after `deadline`.
    pub async fn turn(&self, deadline: Deadline) -> Result<(), NoTurnInTime> {
        if self.interval.is_zero() {
            return Ok(());
        }
        let turn = {
            let mut next = self.next.lock().await;
            let now = Instant::now();
            let turn = next.map_or(now, |next| next.max(now));
            if turn > deadline.instant() {
                return Err(NoTurnInTime);
            }
            *next = Some(turn + self.interval);
            turn
        };
        tokio::time::sleep_until(turn).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_are_evenly_spaced() {
        let pace = Pace::new(Some(4.0));
        let start = Instant::now();
        for _ in 0..5 {
            pace.turn(Deadline::after(Duration::from_secs(10)))
                .await
                .unwrap();
        }
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_comes_too_late_is_not_waited_for() {
        let pace = Pace::new(Some(0.1));
        let deadline = Deadline::after(Duration::from_secs(5));
        pace.turn(deadline).await.unwrap();
        assert_eq!(pace.turn(deadline).await, Err(NoTurnInTime));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_next_to_nothing_lets_one_email_through() {
        for rate in [1e-6, 1e-20, 1e-300, f64::MIN_POSITIVE] {
            let pace = Pace::new(Some(rate));
            let deadline = Deadline::after(Duration::from_secs(900));
            pace.turn(deadline).await.unwrap();
            assert_eq!(pace.turn(deadline).await, Err(NoTurnInTime), "{rate}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_nobody_waits() {
        let pace = Pace::new(None);
        let start = Instant::now();
        for _ in 0..1000 {
            pace.turn(Deadline::after(Duration::ZERO)).await.unwrap();
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
