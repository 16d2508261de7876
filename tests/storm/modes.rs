//! The modes that the function's workers are in.

use crate::support::environment::Environment;

/// Of all workers in a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// `CLAIM_MODE=transaction`.
    Transaction,
    /// `CLAIM_MODE=lease` with `IN_DOUBT=resend`.
    Lease,
    /// `CLAIM_MODE=lease` with `IN_DOUBT=hold`.
    Hold,
    /// Workers in transaction mode and in lease mode side by side, with `IN_DOUBT=resend`.
    Mixed,
}

impl Modes {
    /// As `make storm MODE=` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Lease => "lease",
            Self::Hold => "hold",
            Self::Mixed => "mixed",
        }
    }

    /// Whether some rows outlive their workers.
    pub fn have_leases(self) -> bool {
        self != Self::Transaction
    }

    /// The environment of the worker with this name, of which the figure is its place.
    pub fn of_worker(self, worker: &str, environment: Environment) -> Environment {
        let place = worker.chars().find_map(|letter| letter.to_digit(10));
        let lease = match self {
            Self::Transaction => false,
            Self::Lease | Self::Hold => true,
            Self::Mixed => place.is_some_and(|place| place % 2 == 1),
        };
        let in_doubt = if self == Self::Hold { "hold" } else { "resend" };
        environment
            .with("CLAIM_MODE", if lease { "lease" } else { "transaction" })
            .with("IN_DOUBT", in_doubt)
    }
}
