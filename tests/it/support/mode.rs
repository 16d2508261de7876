//! The two orders in which `notify` works, and what a test must know of them.

/// `CLAIM_MODE` of a worker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    Transaction,
    Lease,
}

impl Mode {
    /// Of every test that doesn't say otherwise: the suite runs once in each.
    pub fn of_this_run() -> Self {
        match std::env::var("TEST_CLAIM_MODE").as_deref() {
            Err(_) | Ok("transaction") => Self::Transaction,
            Ok("lease") => Self::Lease,
            Ok(other) => panic!("TEST_CLAIM_MODE is {other:?}, not transaction or lease"),
        }
    }

    /// As the function reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Lease => "lease",
        }
    }

    /// What is in the statement that makes a sent email final, and in none before it.
    pub fn settlement(self) -> &'static str {
        match self {
            Self::Transaction => "COMMIT",
            Self::Lease => "settled.outcome",
        }
    }
}
