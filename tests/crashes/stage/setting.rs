//! What a case is played with.

/// When SES tells of an email that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// After seconds, and twice.
    InTime,
    /// After the visibility timeout, by when the event was delivered again.
    Late,
    Never,
}

/// `CLAIM_MODE` of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Transaction,
    Lease,
}

/// `IN_DOUBT` of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InDoubt {
    Resend,
    Hold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Of the worker that something befalls.
    pub first: Mode,
    /// Of whoever comes after it.
    pub next: Mode,
    pub in_doubt: InDoubt,
    pub word: Word,
}

impl Setting {
    /// All workers in transaction mode, with the default of `IN_DOUBT`.
    pub fn transaction(word: Word) -> Self {
        Self {
            first: Mode::Transaction,
            next: Mode::Transaction,
            in_doubt: InDoubt::Resend,
            word,
        }
    }

    /// All workers in lease mode.
    pub fn lease(in_doubt: InDoubt, word: Word) -> Self {
        Self {
            first: Mode::Lease,
            next: Mode::Lease,
            in_doubt,
            word,
        }
    }

    /// The same, but for the workers that come after the first.
    pub fn then(self, next: Mode) -> Self {
        Self { next, ..self }
    }
}

impl Mode {
    pub(super) fn value(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Lease => "lease",
        }
    }
}

impl InDoubt {
    pub(super) fn value(self) -> &'static str {
        match self {
            Self::Resend => "resend",
            Self::Hold => "hold",
        }
    }
}
