//! The client of SQS, which is asked only when something failed.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_sdk_sqs::Client;

/// Whatever is asked of SQS can be repeated, so the SDK's own retries are on; all of them together take no
/// longer than this.
const TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(900);

/// SQS, as this sandbox reaches it.
pub struct Queue {
    client: Client,
}

impl Queue {
    pub fn new(aws: &aws_config::SdkConfig) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(ATTEMPT_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .operation_timeout(TIMEOUT)
            .build();
        let config = aws_sdk_sqs::config::Builder::from(aws)
            .timeout_config(timeouts)
            .build();
        Self {
            client: Client::from_conf(config),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}
