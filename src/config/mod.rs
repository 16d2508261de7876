//! What the environment says, one struct for each concern, read once at start.
//!
//! A missing or malformed value stops the process with one line that names the variable and what it expects.

mod claim;
mod database;
mod env;
mod mail;
mod recipients;
mod retention;

pub use claim::{ClaimConfig, ClaimMode, InDoubt};
pub use database::{
    DatabaseConfig, Login, SecretLogin, SslMode, SslRootCert, TlsConfig, TlsWish, TokenLogin,
};
pub use env::{ConfigError, Env};
pub use mail::MailConfig;
pub use recipients::RecipientPolicy;
pub use retention::{CleanupConfig, LEAST_DAYS, Retention};

/// All that `notify` needs.
#[derive(Debug)]
pub struct NotifyConfig {
    pub database: DatabaseConfig,
    pub mail: MailConfig,
    pub recipients: RecipientPolicy,
    pub claim: ClaimConfig,
    pub dead_letter_queue_url: Option<String>,
}

impl NotifyConfig {
    /// # Errors
    /// Names the first variable that is missing or malformed.
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        Ok(Self {
            database: DatabaseConfig::read(env)?,
            mail: MailConfig::read(env)?,
            recipients: RecipientPolicy::read(env)?,
            claim: ClaimConfig::read(env)?,
            dead_letter_queue_url: env.parsed(
                "DEAD_LETTER_QUEUE_URL",
                "the URL of an SQS queue",
                |url| {
                    url.strip_prefix("https://")
                        .or_else(|| url.strip_prefix("http://"))
                        .and_then(|rest| rest.split_once('/'))
                        .filter(|(host, path)| !host.is_empty() && !path.is_empty())
                        .map(|_| url.to_owned())
                },
            )?,
        })
    }
}
