//! Metrics in CloudWatch's embedded format, one line of the log for each invocation:
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>.
//!
//! The names are CloudWatch's, which alarms refer to. Nothing here can fail a record.

use metrics_cloudwatch_embedded::{Builder, Collector};

use crate::config::Env;

pub const NAMESPACE: &str = "onemail";

/// What is counted, each once for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Sent,
    Duplicates,
    Skipped,
    Withheld,
    /// Released for a reason that passes.
    Released,
    /// Released, and it needs whoever operates this.
    SetupErrors,
    /// Nobody knows whether SES sent it.
    OutcomeUnknown,
    /// A send in doubt is not made again by itself: whoever operates this decides.
    Held,
    /// It can never be sent.
    Refused,
    /// Moved to the dead-letter queue by us.
    DeadLettered,
    /// A notification from SES wrote a claim that no worker had written.
    SettledBySes,
    /// A second email left for one event.
    SecondEmails,
    /// A permanent bounce.
    Bounces,
    Complaints,
}

impl Count {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "Sent",
            Self::Duplicates => "Duplicates",
            Self::Skipped => "Skipped",
            Self::Withheld => "Withheld",
            Self::Released => "Released",
            Self::SetupErrors => "SetupErrors",
            Self::OutcomeUnknown => "OutcomeUnknown",
            Self::Held => "Held",
            Self::Refused => "Refused",
            Self::DeadLettered => "DeadLettered",
            Self::SettledBySes => "SettledBySes",
            Self::SecondEmails => "SecondEmails",
            Self::Bounces => "Bounces",
            Self::Complaints => "Complaints",
        }
    }
}

/// Counts one; without [`Metrics`], nothing happens.
pub fn count(what: Count) {
    metrics::counter!(what.name()).increment(1);
}

/// Writes what was counted. There is one for the process.
pub struct Metrics(Option<&'static Collector>);

impl Metrics {
    /// Inside Lambda, where lines of standard output become metrics.
    pub fn in_lambda(env: &Env) -> Self {
        let function = env.get("AWS_LAMBDA_FUNCTION_NAME").unwrap_or("onemail");
        let collector = Builder::new()
            .cloudwatch_namespace(NAMESPACE)
            .with_dimension("FunctionName", function.to_owned())
            .init();
        match collector {
            Ok(collector) => Self(Some(collector)),
            Err(error) => {
                tracing::warn!(cause = %error, "there will be no metrics");
                Self(None)
            }
        }
    }

    pub fn flush(&self) {
        if let Some(collector) = self.0
            && let Err(error) = collector.flush(std::io::stdout())
        {
            tracing::warn!(cause = %error, "the metrics of this invocation could not be written");
        }
    }
}
