//! How a record's walk ended.

use std::time::Duration;

use thiserror::Error;

use crate::claim::Standing;
use crate::database::{DatabaseError, DatabaseVerdict};
use crate::queue::backoff;
use crate::receive::Malformed;
use crate::send::{Cause, SesMessageId};

#[derive(Clone, Debug)]
pub enum Outcome {
    /// SES has the email.
    Sent(SesMessageId),
    /// The event was handled before.
    Duplicate,
    /// There is nobody to write to any more.
    Skipped,
    /// Outside production: this recipient may not be written to.
    Withheld,
    /// It can never be sent, and stays on the queue until the redrive policy moves it.
    Refused(Refusal),
    /// It can never be sent, and was moved to the dead-letter queue.
    DeadLettered(Refusal),
    /// It was not sent, and comes back.
    Released(Release),
    /// Nobody knows whether it was sent; it comes back.
    Unknown(Cause),
}

/// Why an event can never be sent.
#[derive(Clone, Debug, Error)]
pub enum Refusal {
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("its key was used before by an event with another payload")]
    KeyReused,
    #[error("SES could not take its recipient: {0}")]
    Recipient(String),
    #[error("Postgres does not take its data")]
    Data { code: String },
    #[error("SES refused the message: {}", .0.detail)]
    Message(Cause),
    /// By itself, that is: whoever operates this decides.
    #[error("nobody knows whether its email was sent, and IN_DOUBT says that it is held")]
    Held,
}

/// Why a record comes back unsent.
#[derive(Clone, Debug, Error)]
pub enum Release {
    #[error("too little time was left to finish it")]
    NoTime,
    #[error("an earlier record of its group or key stays on the queue")]
    BehindAFailure,
    #[error("another worker is at work on the same event")]
    InProgress(Duration),
    #[error("nobody knows yet whether an earlier email of the same event was sent")]
    InDoubt(Duration),
    #[error("SES did not take it: {}", .0.detail)]
    Ses(Cause),
    #[error("SES will not take it until our setup is mended: {}", .0.detail)]
    SesSetup(Cause),
    #[error("Postgres failed: {}", .0.detail)]
    Database(Cause),
    #[error("Postgres will fail until our setup is mended: {}", .0.detail)]
    DatabaseSetup(Cause),
    #[error("the email's folder is broken: {0}")]
    Folder(String),
    #[error("the deadline came while it was handled")]
    CutOff,
    #[error("its handling panicked")]
    Panicked,
}

impl Outcome {
    /// Whether SQS may delete the message.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Sent(_)
            | Self::Duplicate
            | Self::Skipped
            | Self::Withheld
            | Self::DeadLettered(_) => true,
            Self::Refused(_) | Self::Released(_) | Self::Unknown(_) => false,
        }
    }

    /// When a message that isn't done comes back; `None`: at the queue's visibility timeout.
    pub fn comes_back_after(
        &self,
        receive_count: u32,
        in_doubt_wait: Duration,
    ) -> Option<Duration> {
        match self {
            // SES's word comes first.
            Self::Unknown(_) => Some(backoff(receive_count).max(in_doubt_wait)),
            // Before that it would be a receive for nothing.
            Self::Released(Release::InProgress(wait) | Release::InDoubt(wait)) => {
                Some(backoff(receive_count).max(*wait))
            }
            Self::Released(_) => Some(backoff(receive_count)),
            _ => None,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Sent(_) => "sent",
            Self::Duplicate => "duplicate",
            Self::Skipped => "skipped",
            Self::Withheld => "withheld",
            Self::Refused(Refusal::Held) | Self::DeadLettered(Refusal::Held) => "held",
            Self::Refused(_) => "refused",
            Self::DeadLettered(_) => "dead_lettered",
            Self::Released(_) => "released",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl Refusal {
    /// A word for logs and for the attributes of a dead letter.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(Malformed::UnknownType(_)) => "unknown_type",
            Self::Malformed(_) => "malformed",
            Self::KeyReused => "key_reused",
            Self::Recipient(_) => "impossible_address",
            Self::Data { .. } => "impossible_data",
            Self::Message(_) => "message_refused",
            Self::Held => "held",
        }
    }

    /// The code that SES or Postgres gave.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Data { code } => Some(code),
            Self::Message(cause) => Some(&cause.code),
            _ => None,
        }
    }
}

impl Release {
    /// A word for logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoTime => "no_time",
            Self::BehindAFailure => "behind_a_failure",
            Self::InProgress(_) => "in_progress",
            Self::InDoubt(_) => "in_doubt",
            Self::Ses(_) => "ses",
            Self::SesSetup(_) => "ses_setup",
            Self::Database(_) => "database",
            Self::DatabaseSetup(_) => "database_setup",
            Self::Folder(_) => "broken_folder",
            Self::CutOff => "cut_off",
            Self::Panicked => "panic",
        }
    }

    /// The code that SES or Postgres gave.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Ses(cause)
            | Self::SesSetup(cause)
            | Self::Database(cause)
            | Self::DatabaseSetup(cause) => Some(&cause.code),
            _ => None,
        }
    }

    /// Whether it passes by itself, rather than when somebody acts.
    pub fn passes(&self) -> bool {
        !matches!(
            self,
            Self::SesSetup(_) | Self::DatabaseSetup(_) | Self::Folder(_) | Self::Panicked
        )
    }
}

impl From<Standing> for Outcome {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Settled => Self::Duplicate,
            Standing::InProgress(lease) => Self::Released(Release::InProgress(lease)),
            Standing::InDoubt(wait) => Self::Released(Release::InDoubt(wait)),
            Standing::Held => Self::Refused(Refusal::Held),
            Standing::OtherPayload => Self::Refused(Refusal::KeyReused),
        }
    }
}

/// Before the email was sent.
impl From<DatabaseError> for Outcome {
    fn from(error: DatabaseError) -> Self {
        match error.verdict() {
            DatabaseVerdict::Never => Self::Refused(Refusal::Data {
                code: error.code().to_owned(),
            }),
            _ => Self::Released(Release::from(&error)),
        }
    }
}

/// Where it says nothing of any one event.
impl From<&DatabaseError> for Release {
    fn from(error: &DatabaseError) -> Self {
        let cause = Cause::new(error.code(), error.cause());
        if error.is_setup() {
            Self::DatabaseSetup(cause)
        } else {
            Self::Database(cause)
        }
    }
}
