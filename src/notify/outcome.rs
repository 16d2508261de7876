//! How a record's walk ended.

use thiserror::Error;

use crate::receive::Malformed;
use crate::send::{Cause, SesMessageId};

#[derive(Debug)]
pub enum Outcome {
    /// SES has the email.
    Sent(SesMessageId),
    /// The event was handled before.
    Duplicate,
    /// There is nobody to write to any more.
    Skipped,
    /// Outside production: this recipient may not be written to.
    Withheld,
    /// It can never be sent.
    Refused(Refusal),
    /// It was not sent, and comes back.
    Released(Release),
    /// Nobody knows whether it was sent; it comes back.
    Unknown(Cause),
}

/// Why an event can never be sent.
#[derive(Debug, Error)]
pub enum Refusal {
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("its key was used before by an event with another payload")]
    KeyReused,
    #[error("SES could not take its recipient: {0}")]
    Recipient(String),
    #[error("Postgres does not take its data")]
    Data,
    #[error("SES refused the message: {}", .0.detail)]
    Message(Cause),
}

impl Refusal {
    /// A word for logs and for the attributes of a dead letter.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(Malformed::UnknownType(_)) => "unknown_type",
            Self::Malformed(_) => "malformed",
            Self::KeyReused => "key_reused",
            Self::Recipient(_) => "impossible_address",
            Self::Data => "impossible_data",
            Self::Message(_) => "message_refused",
        }
    }
}

/// Why a record comes back unsent.
#[derive(Debug, Error)]
pub enum Release {
    #[error("too little time was left to finish it")]
    NoTime,
    #[error("an earlier record of its group or key stays on the queue")]
    BehindAFailure,
    #[error("another worker is at work on the same event")]
    InProgress,
    #[error("SES did not take it: {}", .0.detail)]
    Ses(Cause),
    #[error("SES will not take it until our setup is mended: {}", .0.detail)]
    SesSetup(Cause),
    #[error("Postgres failed: {cause}")]
    Database { code: String, cause: String },
    #[error("Postgres will fail until our setup is mended: {cause}")]
    DatabaseSetup { code: String, cause: String },
    #[error("the email's folder is broken: {0}")]
    Folder(String),
    #[error("its handling panicked")]
    Panicked,
}

impl Release {
    /// A word for logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoTime => "no_time",
            Self::BehindAFailure => "behind_a_failure",
            Self::InProgress => "in_progress",
            Self::Ses(_) => "ses",
            Self::SesSetup(_) => "ses_setup",
            Self::Database { .. } => "database",
            Self::DatabaseSetup { .. } => "database_setup",
            Self::Folder(_) => "broken_folder",
            Self::Panicked => "panic",
        }
    }

    /// The code that SES or Postgres gave.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Ses(cause) | Self::SesSetup(cause) => Some(&cause.code),
            Self::Database { code, .. } | Self::DatabaseSetup { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether it passes by itself, rather than when somebody acts.
    pub fn passes(&self) -> bool {
        !matches!(
            self,
            Self::SesSetup(_) | Self::DatabaseSetup { .. } | Self::Folder(_) | Self::Panicked
        )
    }
}

impl Outcome {
    /// Whether SQS may delete the message.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Sent(_) | Self::Duplicate | Self::Skipped | Self::Withheld => true,
            Self::Refused(_) | Self::Released(_) | Self::Unknown(_) => false,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Sent(_) => "sent",
            Self::Duplicate => "duplicate",
            Self::Skipped => "skipped",
            Self::Withheld => "withheld",
            Self::Refused(_) => "refused",
            Self::Released(_) => "released",
            Self::Unknown(_) => "unknown",
        }
    }
}
