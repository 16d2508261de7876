//! The one place that decides what an error of Postgres means, before an email was sent.

use deadpool::managed::PoolError;
use thiserror::Error;
use tokio_postgres::error::SqlState;

use crate::causes::told;

use super::secret::SecretError;
use super::token::TokenError;

/// Something went wrong between us and Postgres.
#[derive(Debug, Error)]
pub enum DatabaseError {
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
    /// The query's row has a value that can't be read, such as a number beyond any range.
    #[error("a row of recipient.sql can't be read")]
    UnreadableRow(#[source] tokio_postgres::Error),
    /// The password can't be had.
    #[error("DATABASE_SECRET_ARN: {0}")]
    Secret(SecretError),
    #[error("DATABASE_IAM_AUTH: {0}")]
    Token(TokenError),
    #[error(transparent)]
    SchemaTooOld(#[from] super::schema::SchemaTooOld),
    #[error("no connection to Postgres in time")]
    NoConnectionInTime,
    #[error("no answer from Postgres in time")]
    NoAnswerInTime,
    #[error("the transaction was not open, or the row was gone")]
    NoTransaction,
}

/// What is to be done about it, as long as nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseVerdict {
    /// Another connection may do better at once.
    TryAnotherConnection,
    /// It passes, but not at once: the record comes back later.
    Later,
    /// Postgres can't take this event's data, now or ever.
    Never,
    /// Something is set up wrongly; the record comes back, and whoever operates this must act.
    Ours,
}

impl DatabaseError {
    pub fn verdict(&self) -> DatabaseVerdict {
        use DatabaseVerdict::*;
        let error = match self {
            Self::NoConnectionInTime => return Later,
            Self::NoAnswerInTime | Self::NoTransaction => return TryAnotherConnection,
            Self::UnreadableRow(_) | Self::SchemaTooOld(_) => return Ours,
            // Another connection would need the same password.
            Self::Secret(SecretError::Unavailable { .. })
            | Self::Token(TokenError::Unavailable(_)) => return Later,
            Self::Secret(SecretError::Refused { .. } | SecretError::Malformed(_))
            | Self::Token(TokenError::Setup(_)) => return Ours,
            Self::Postgres(error) => error,
        };
        match error.code() {
            Some(code) => of_sql_state(code),
            // No word from the server: the connection is gone, or there was none.
            None => TryAnotherConnection,
        }
    }

    /// Whether a neighbour held a lock for longer than we wait.
    pub fn is_lock_timeout(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
    }

    /// Whether the connection is lost, or was never had, and Postgres has not said why.
    pub fn is_of_the_connection(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code().is_none())
    }

    /// Whether a table, a column or a schema is missing.
    pub(super) fn is_of_the_schema(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code().is_some_and(|code| {
            [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_COLUMN, SqlState::INVALID_SCHEMA_NAME].contains(code)
        }))
    }

    /// Whether it is our setup, once other connections have failed in the same way: the password, or TLS.
    pub fn is_setup(&self) -> bool {
        if self.verdict() == DatabaseVerdict::Ours {
            return true;
        }
        match self {
            Self::Postgres(error) => match error.code() {
                Some(code) => code.code().starts_with("28"),
                // The library doesn't tell kinds of errors but by their text.
                None => [
                    "error performing TLS handshake",
                    "invalid configuration",
                    "authentication error",
                ]
                .iter()
                .any(|kind| error.to_string().starts_with(kind)),
            },
            _ => false,
        }
    }

    /// Whether Postgres doesn't take the user's password; a token of IAM is one.
    pub(super) fn is_of_the_password(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code().is_some_and(|code| {
            [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION].contains(code)
        }))
    }

    /// Postgres's code, or a word for what has none.
    pub fn code(&self) -> &str {
        match self {
            Self::Postgres(error) => match error.code() {
                Some(code) => code.code(),
                None if error.is_closed() => "connection_closed",
                None => "connection_failed",
            },
            Self::UnreadableRow(_) => "unreadable_row",
            Self::SchemaTooOld(_) => "schema_too_old",
            Self::Secret(error) => error.code(),
            Self::Token(_) => "no_token",
            Self::NoConnectionInTime => "no_connection_in_time",
            Self::NoAnswerInTime => "no_answer_in_time",
            Self::NoTransaction => "no_transaction",
        }
    }

    /// What happened, with its causes. Postgres's `DETAIL` and `CONTEXT`, which can quote data, are left out,
    /// and so is its message, but for classes of errors whose messages speak of the server alone.
    pub fn cause(&self) -> String {
        let Self::Postgres(error) = self else {
            return self.to_string();
        };
        match error.as_db_error() {
            Some(server) if speaks_of_the_server(server.code()) => server.message().to_owned(),
            // 22: "invalid input syntax for type bigint: "..."", P0: whatever a trigger raises.
            Some(server) => format!("Postgres answered with {}", server.code().code()),
            None => told(error),
        }
    }
}

impl From<PoolError<DatabaseError>> for DatabaseError {
    fn from(error: PoolError<DatabaseError>) -> Self {
        match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => Self::NoConnectionInTime,
        }
    }
}

fn speaks_of_the_server(code: &SqlState) -> bool {
    const CLASSES: [&str; 11] = [
        "08", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "58",
    ];
    CLASSES.iter().any(|class| code.code().starts_with(class))
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn of_sql_state(code: &SqlState) -> DatabaseVerdict {
    use DatabaseVerdict::*;
    match code.code() {
        // A neighbour holds the key: it is at work on the same event.
        "55P03" => Later,
        // Our own statement timeout, or an operator's cancel.
        "57014" => Later,
        // Idle in a transaction for too long: the send took longer than it may.
        "25P03" => Later,
        // A node that became read-only in a failover; the next connection finds the new primary.
        "25006" => TryAnotherConnection,
        // Serialization failure and deadlock: the loser may try again.
        "40001" | "40P01" => TryAnotherConnection,
        // Too many connections, and starting up or shutting down: a pooler or another node may take us.
        "53300" | "57P01" | "57P02" | "57P03" => TryAnotherConnection,
        // The password was rotated, or the token expired, between two connections.
        "28P01" | "28000" => TryAnotherConnection,
        // Our table or column, or the job board's, isn't there; or we may not read it.
        "42P01" | "42703" | "42501" | "3F000" | "3D000" => Ours,
        // NUL, a text that is no number, a number out of range: this event's data.
        code if code.starts_with("22") => Never,
        code if code.starts_with("08") => TryAnotherConnection,
        // Out of disk or memory.
        code if code.starts_with("53") => Later,
        code if code.starts_with("42") => Ours,
        _ => Later,
    }
}
