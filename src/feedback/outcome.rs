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
    /// So does this: Postgres does not take what it says.
    Data(DatabaseError),
    /// It comes back.
    Database(DatabaseError),
    /// So does this, and Postgres will fail until our setup is mended.
    DatabaseSetup(DatabaseError),
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
            Self::Database(error) if error.is_lock_timeout() => Some(BEHIND_A_WORKER),
            Self::Database(_) | Self::DatabaseSetup(_) | Self::Panicked => {
                Some(backoff(receive_count))
            }
            _ => None,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Recorded(Recorded::Settled) => "settled",
            Self::Recorded(Recorded::SecondEmail) => "second_email",
            Self::Recorded(Recorded::New) => "recorded",
            Self::Recorded(Recorded::Known) => "duplicate",
            Self::Greeting => "greeting",
            Self::Malformed(_) | Self::Data(_) => "refused",
            Self::Database(_) | Self::DatabaseSetup(_) | Self::CutOff | Self::Panicked => {
                "released"
            }
        }
    }

    /// A word for logs.
    pub fn reason(&self) -> Option<&'static str> {
        Some(match self {
            Self::Recorded(_) | Self::Greeting => return None,
            Self::Malformed(_) => "malformed",
            Self::Data(_) => "impossible_data",
            Self::Database(_) => "database",
            Self::DatabaseSetup(_) => "database_setup",
            Self::CutOff => "cut_off",
            Self::Panicked => "panic",
        })
    }

    /// The code that Postgres gave.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Data(error) | Self::Database(error) | Self::DatabaseSetup(error) => {
                Some(error.code())
            }
            _ => None,
        }
    }

    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Malformed(problem) => Some(problem.to_string()),
            Self::Data(error) | Self::Database(error) | Self::DatabaseSetup(error) => {
                Some(error.cause())
            }
            _ => None,
        }
    }
}

impl From<DatabaseError> for Outcome {
    fn from(error: DatabaseError) -> Self {
        if error.verdict() == DatabaseVerdict::Never {
            Self::Data(error)
        } else if error.is_setup() {
            Self::DatabaseSetup(error)
        } else {
            Self::Database(error)
        }
    }
}
