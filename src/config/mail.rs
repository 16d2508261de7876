//! Whom emails come from, and which SES configuration set they go through.

use crate::mail::Mailbox;

use super::{ConfigError, Env};

const MAILBOX: &str =
    "an email address, with or without a name, such as `Job Board <no-reply@example.com>`";

/// Read from `MAIL_FROM`, `MAIL_REPLY_TO` and `SES_CONFIGURATION_SET`.
#[derive(Debug)]
pub struct MailConfig {
    pub from: Mailbox,
    pub reply_to: Option<Mailbox>,
    pub configuration_set: Option<String>,
}

impl MailConfig {
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        let from = env.required("MAIL_FROM", MAILBOX)?;
        let from = Mailbox::parse(from).map_err(|problem| {
            ConfigError::because("MAIL_FROM", format!("is malformed ({problem})"), MAILBOX)
        })?;
        Ok(Self {
            from,
            reply_to: env.parsed("MAIL_REPLY_TO", MAILBOX, |value| Mailbox::parse(value).ok())?,
            configuration_set: env.parsed(
                "SES_CONFIGURATION_SET",
                "a configuration set's name: 1 to 64 letters, digits, `_` and `-`",
                |value| {
                    (value.len() <= 64
                        && value
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)))
                    .then(|| value.to_owned())
                },
            )?,
        })
    }
}
