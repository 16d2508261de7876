//! For how long the ledger remembers.

use super::{ConfigError, DatabaseConfig, Env};

/// SQS keeps a message for fourteen days at the most, and may hand it out again until then: an event that is
/// forgotten sooner would be sent twice.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html>
pub const LEAST_DAYS: u16 = 14;
/// A message that spends its fourteen days on the queue and is then moved to a dead-letter queue, where its time
/// can begin anew, is twenty-eight days old when SQS drops it.
const DEFAULT_DAYS: u16 = 30;

/// A whole number of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention(u16);

impl Retention {
    /// Read from `RETENTION_DAYS`.
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        let days = env.parsed(
            "RETENTION_DAYS",
            "a whole number of days from 14 to 36500; SQS can redeliver a message for 14",
            |value| {
                value
                    .parse::<u16>()
                    .ok()
                    .filter(|days| (LEAST_DAYS..=36_500).contains(days))
            },
        )?;
        Ok(Self(days.unwrap_or(DEFAULT_DAYS)))
    }

    pub fn days(self) -> u16 {
        self.0
    }
}

/// All that `cleanup` needs.
#[derive(Debug)]
pub struct CleanupConfig {
    pub database: DatabaseConfig,
    pub retention: Retention,
}

impl CleanupConfig {
    /// # Errors
    /// Names the first variable that is missing or malformed.
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        Ok(Self {
            database: DatabaseConfig::read(env)?,
            retention: Retention::read(env)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(days: &str) -> Result<u16, ConfigError> {
        Retention::read(&[("RETENTION_DAYS", days)].into_iter().collect()).map(Retention::days)
    }

    #[test]
    fn less_than_what_sqs_keeps_is_refused() {
        assert_eq!(read("14"), Ok(14));
        assert_eq!(read("36500"), Ok(36_500));
        assert_eq!(read(""), Ok(30));
        for refused in ["13", "0", "-30", "36501", "30.5", "30d", "a month"] {
            let message = read(refused).unwrap_err().to_string();
            assert!(message.starts_with("RETENTION_DAYS "), "{message}");
        }
    }
}
