//! Metrics in CloudWatch's embedded format, one line of the log for each invocation:
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>.
//!
//! The names are CloudWatch's, which alarms refer to. Nothing here can fail a record.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use metrics::Unit;
use metrics_cloudwatch_embedded::{Builder, Collector};

use crate::config::Env;

pub const NAMESPACE: &str = "onemail";

/// What is counted, each once for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// A key was claimed; what follows is sent, skipped, withheld, released, refused or unknown.
    Claimed,
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
    /// A notification from SES wrote that an email was sent before its worker did, which is dead or slower.
    SettledBySes,
    /// A second email left for one event.
    SecondEmails,
    /// A permanent bounce.
    Bounces,
    Complaints,
    /// A row that was older than the retention.
    Deleted,
}

impl Count {
    pub fn name(self) -> &'static str {
        match self {
            Self::Claimed => "Claimed",
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
            Self::Deleted => "Deleted",
        }
    }
}

/// Counts one; without [`Metrics`], nothing happens.
pub fn count(what: Count) {
    count_many(what, 1);
}

/// Counts so many.
pub fn count_many(what: Count, many: u64) {
    metrics::counter!(what.name()).increment(many);
}

/// Counts one, by itself and once more by its reason, which is one of a few words.
pub fn count_with_reason(what: Count, reason: &'static str) {
    count(what);
    metrics::counter!(what.name(), "Reason" => reason).increment(1);
}

/// What takes time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// From the moment the producer sent the event until SES accepted its email.
    ArrivalToAcceptance,
    /// One request to SES.
    Ses,
    /// One step of a claim or its settlement, with all its statements.
    Database,
}

impl Time {
    pub const ALL: [Self; 3] = [Self::ArrivalToAcceptance, Self::Ses, Self::Database];

    pub fn name(self) -> &'static str {
        match self {
            Self::ArrivalToAcceptance => "ArrivalToAcceptance",
            Self::Ses => "SesTime",
            Self::Database => "DatabaseTime",
        }
    }
}

/// The format holds so many values of a metric; of a large batch the first ones are told.
const MOST_VALUES: usize = 100;
static VALUES: [AtomicUsize; Time::ALL.len()] = [const { AtomicUsize::new(0) }; Time::ALL.len()];

/// Records how long something took.
pub fn took(what: Time, time: Duration) {
    if VALUES[what as usize].fetch_add(1, Ordering::Relaxed) < MOST_VALUES {
        metrics::histogram!(what.name()).record(time.as_secs_f64() * 1000.0);
    }
}

/// Records how long has passed since then, by the clocks of two machines.
pub fn took_since(what: Time, then: SystemTime) {
    took(what, then.elapsed().unwrap_or_default());
}

/// Records how long the work takes, if it comes to its end.
pub async fn timed<T>(what: Time, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let done = work.await;
    took(what, began.elapsed());
    done
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
            Ok(collector) => {
                for time in Time::ALL {
                    metrics::describe_histogram!(time.name(), Unit::Milliseconds, "");
                }
                Self(Some(collector))
            }
            Err(error) => {
                tracing::warn!(cause = %error, "there will be no metrics");
                Self(None)
            }
        }
    }

    pub fn flush(&self) {
        for values in &VALUES {
            values.store(0, Ordering::Relaxed);
        }
        if let Some(collector) = self.0
            && let Err(error) = collector.flush(std::io::stdout())
        {
            tracing::warn!(cause = %error, "the metrics of this invocation could not be written");
        }
    }
}
