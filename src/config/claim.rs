//! How events are claimed, and how many at once.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::{ConfigError, Env};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimMode {
    /// Claim, send and settle inside one transaction, each event by itself.
    Transaction,
    /// Claim a batch, send, then settle: no transaction is open while SES answers.
    Lease,
}

/// What becomes of a send whose outcome nobody learnt, once SES's word has not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InDoubt {
    /// It is made again: perhaps a second email, but never a missing one.
    Resend,
    /// It is never made again by itself: perhaps a missing email, but never a second one.
    Hold,
}

/// Read from `CLAIM_MODE`, `IN_DOUBT`, `IN_DOUBT_WAIT`, `MAX_IN_FLIGHT` and `SES_MAX_SEND_RATE`.
#[derive(Debug)]
pub struct ClaimConfig {
    pub mode: ClaimMode,
    pub in_doubt: InDoubt,
    /// How long a notification from SES may still settle a send of unknown outcome.
    pub in_doubt_wait: Duration,
    /// Emails that this sandbox sends at once, and so the most connections that it opens.
    pub max_in_flight: NonZeroUsize,
    /// Emails a second that this sandbox may send, if there is a limit.
    pub max_send_rate: Option<f64>,
}

impl ClaimConfig {
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        let mode = env
            .parsed("CLAIM_MODE", "transaction or lease", |value| match value {
                "transaction" => Some(ClaimMode::Transaction),
                "lease" => Some(ClaimMode::Lease),
                _ => None,
            })?
            .unwrap_or(ClaimMode::Transaction);
        let in_doubt = env
            .parsed("IN_DOUBT", "resend or hold", |value| match value {
                "resend" => Some(InDoubt::Resend),
                "hold" => Some(InDoubt::Hold),
                _ => None,
            })?
            .unwrap_or(InDoubt::Resend);
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
            in_doubt,
            in_doubt_wait: Duration::from_secs(in_doubt_wait.into()),
            max_in_flight,
            max_send_rate,
        })
    }
}
