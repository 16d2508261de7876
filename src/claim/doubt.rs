//! What a row that is `sending` means to whoever comes after its worker.

use std::time::Duration;

use crate::config::{ClaimConfig, InDoubt};

use super::Standing;

/// What becomes of a send that is in doubt.
#[derive(Clone, Copy, Debug)]
pub struct DoubtPolicy {
    /// For how long SES's word may still settle it.
    pub wait: Duration,
    /// What is done when it has not.
    pub then: InDoubt,
}

/// How far a row that is `sending` has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sending {
    /// Its worker may be alive, or SES's word may come.
    Not(Standing),
    /// Neither any more.
    Overdue,
}

impl DoubtPolicy {
    /// `lease_s`: for how many seconds the lease holds yet, by the database's clock; negative once it ran out.
    pub(super) fn sending(&self, lease_s: f64) -> Sending {
        let left = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let wait_s = lease_s + self.wait.as_secs_f64();
        if lease_s > 0.0 {
            Sending::Not(Standing::InProgress(left(lease_s)))
        } else if wait_s > 0.0 {
            Sending::Not(Standing::InDoubt(left(wait_s)))
        } else {
            Sending::Overdue
        }
    }
}

impl From<&ClaimConfig> for DoubtPolicy {
    fn from(config: &ClaimConfig) -> Self {
        Self {
            wait: config.in_doubt_wait,
            then: config.in_doubt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_respected_then_waited_for_and_then_over() {
        let policy = DoubtPolicy {
            wait: Duration::from_secs(120),
            then: InDoubt::Resend,
        };
        let seconds = Duration::from_secs;
        for (lease_s, sending) in [
            (30.0, Sending::Not(Standing::InProgress(seconds(30)))),
            (0.0, Sending::Not(Standing::InDoubt(seconds(120)))),
            (-50.0, Sending::Not(Standing::InDoubt(seconds(70)))),
            (-120.0, Sending::Overdue),
            (-1e9, Sending::Overdue),
        ] {
            assert_eq!(policy.sending(lease_s), sending, "{lease_s}");
        }
    }
}
