//! How the handling of a notification ended.

use std::time::Duration;

use crate::database::{DatabaseError, DatabaseVerdict};
use crate::queue::backoff;

use super::notification::NotANotification;
use super::record::Recorded;

/// After a worker in mid-send held the key: by then it has committed, or Postgres has rolled it back.
const BEHIND_A_WORKER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) enum Outcome {
    Recorded(Recorded),
    Greeting,
    /// It stays on the queue until the redrive policy moves it.
    Malformed(NotANotification),
    Database(DatabaseError),
    /// The deadline came while it was handled.
    CutOff,
    Panicked,
}

impl Outcome {
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Recorded(_) | Self::Greeting)
    }

    pub fn comes_back_after(&self, receive_count: u32) -> Option<Duration> {
        match self {
            Self::Database(error) if error.code() == "55P03" => Some(BEHIND_A_WORKER),
            Self::Database(error) if error.verdict() != DatabaseVerdict::Never => {
                Some(backoff(receive_count))
            }
            Self::Panicked => Some(backoff(receive_count)),
            _ => None,
        }
    }
}
