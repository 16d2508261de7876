//! Each step of the worker at which it can be stopped, and how to bring it there.

mod at_ses;
mod lease;
mod transaction;

pub use at_ses::AtSes;
pub use lease::{UnderLease, throttle};
pub use transaction::InTransaction;

use crate::fate::Fate;
use crate::stage::{Invocation, Mode, Stage};

/// How far the worker has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    InTransaction(InTransaction),
    UnderLease(UnderLease),
}

impl Moment {
    pub fn all(mode: Mode) -> Vec<Self> {
        match mode {
            Mode::Transaction => InTransaction::ALL.map(Self::InTransaction).to_vec(),
            Mode::Lease => UnderLease::ALL.map(Self::UnderLease).to_vec(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::InTransaction(moment) => moment.name(),
            Self::UnderLease(moment) => moment.name(),
        }
    }

    /// What becomes of the event if the worker is no more.
    pub fn fate(self) -> Fate {
        match self {
            Self::InTransaction(moment) => moment.fate(),
            Self::UnderLease(moment) => moment.fate(),
        }
    }

    /// Whether the invocation is over by then.
    pub fn is_after_the_answer(self) -> bool {
        matches!(
            self,
            Self::InTransaction(InTransaction::Answered) | Self::UnderLease(UnderLease::Answered)
        )
    }

    /// Begins the invocation, and comes back when the worker is there.
    pub async fn reach(self, stage: &mut Stage) -> Invocation {
        match self {
            Self::InTransaction(moment) => moment.reach(stage).await,
            Self::UnderLease(moment) => moment.reach(stage).await,
        }
    }
}

/// Waits until a claim is settled, and Postgres has committed that.
pub async fn committed(stage: &Stage) {
    let count = "SELECT count(*) FROM processed_events WHERE outcome = 'sent'";
    stage.database.until("the commit", count, 1).await;
}
