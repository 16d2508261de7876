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
        let reply_to = env.get("MAIL_REPLY_TO");
        Ok(Self {
            from: mailbox("MAIL_FROM", from)?,
            reply_to: reply_to
                .map(|value| mailbox("MAIL_REPLY_TO", value))
                .transpose()?,
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

fn mailbox(variable: &'static str, value: &str) -> Result<Mailbox, ConfigError> {
    Mailbox::parse(value).map_err(|problem| {
        ConfigError::because(variable, format!("is malformed ({problem})"), MAILBOX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: [(&str, &str); 2]) -> Result<MailConfig, ConfigError> {
        MailConfig::read(&variables.into_iter().collect())
    }

    #[test]
    fn a_sender_fits_what_ses_takes_and_an_unusable_one_is_named() {
        let long = format!("\u{FEFF}{} <no-reply@example.com>\u{200B}", "Ж".repeat(200));
        let mail = read([("MAIL_FROM", &long), ("MAIL_REPLY_TO", &long)]).unwrap();
        assert!(mail.from.header_value().len() <= 320);
        assert!(mail.reply_to.unwrap().header_value().len() <= 320);

        let unusable = format!("{}@example.com", "a".repeat(330));
        let error = read([("MAIL_FROM", &unusable), ("MAIL_REPLY_TO", "")]).unwrap_err();
        assert!(error.to_string().starts_with("MAIL_FROM "));
        let error = read([("MAIL_FROM", &long), ("MAIL_REPLY_TO", &unusable)]).unwrap_err();
        assert!(error.to_string().starts_with("MAIL_REPLY_TO "));
    }
}
