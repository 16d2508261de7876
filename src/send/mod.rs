//! SES gets the email, in one attempt: it knows no idempotency key, so a second request is a second email.

mod client;
mod pace;
mod underway;
mod verdict;

pub use client::{LEAST_TIME, Mailer, Sender};
pub use pace::Pace;
pub use verdict::{Cause, SendVerdict};

use std::fmt;

/// As SES returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SesMessageId(String);

impl SesMessageId {
    /// `None` for what can't be one: nothing, or what Postgres would not take.
    pub fn parse(text: &str) -> Option<Self> {
        (!text.is_empty() && !text.contains('\0')).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SesMessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
