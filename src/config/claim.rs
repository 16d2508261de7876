//! How events are claimed, and how many at once.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::{ConfigError, Env};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimMode {
    /// Claim, send and settle inside one transaction.
    Transaction,
}

/// Read from `CLAIM_MODE`, `IN_DOUBT`, `IN_DOUBT_WAIT`, `MAX_IN_FLIGHT` and `SES_MAX_SEND_RATE`.
#[derive(Debug)]
pub struct ClaimConfig {
    pub mode: ClaimMode,
    /// How long a notification from SES may still settle a send of unknown outcome.
    pub in_doubt_wait: Duration,
    /// Emails that this sandbox sends at once, and so the most connections that it opens.
    pub max_in_flight: NonZeroUsize,
    /// Emails a second that this sandbox may send, if there is a limit.
    pub max_send_rate: Option<f64>,
}

impl ClaimConfig {
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        let mode = match env.get("CLAIM_MODE") {
            None | Some("transaction") => ClaimMode::Transaction,
            Some("lease") => {
                return Err(ConfigError::because(
                    "CLAIM_MODE",
                    "is `lease`, which is not built yet",
                    "transaction",
                ));
            }
            Some(_) => return Err(ConfigError::malformed("CLAIM_MODE", "transaction or lease")),
        };
        env.parsed("IN_DOUBT", "resend or hold", |value| {
            matches!(value, "resend" | "hold").then_some(())
        })?;
        let in_doubt_wait = env
            .parsed(
                "IN_DOUBT_WAIT",
                "a whole number of seconds from 0 to 43200",
                |value| {
                    value
                        .parse::<u32>()
                        .ok()
                        .filter(|seconds| *seconds <= 43_200)
                },
            )?
            .unwrap_or(120);
        let max_in_flight = env
            .parsed("MAX_IN_FLIGHT", "a whole number from 1 to 1000", |value| {
                value
                    .parse::<NonZeroUsize>()
                    .ok()
                    .filter(|count| count.get() <= 1000)
            })?
            .unwrap_or(NonZeroUsize::new(10).expect("ten is not zero"));
        let max_send_rate = env
            .parsed(
                "SES_MAX_SEND_RATE",
                "emails a second, such as 14 or 0.5; 0 for no limit",
                |value| {
                    value
                        .parse::<f64>()
                        .ok()
                        .filter(|rate| rate.is_finite() && *rate >= 0.0)
                },
            )?
            .filter(|rate| *rate > 0.0);
        Ok(Self {
            mode,
            in_doubt_wait: Duration::from_secs(in_doubt_wait.into()),
            max_in_flight,
            max_send_rate,
        })
    }
}
