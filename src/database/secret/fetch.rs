//! Secrets Manager is asked, and what its errors mean.

use std::error::Error as StdError;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::timeout::TimeoutConfig;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueError;
use thiserror::Error;

use crate::causes::causes;

/// Reading can be repeated, so the SDK's own retries are on; all of them together take no longer than this.
const TIMEOUT: Duration = Duration::from_secs(6);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Why there are no user and password. Never with a part of the secret.
#[derive(Clone, Debug, Error)]
pub enum SecretError {
    /// It passes: throttled, no answer in time, a fault of the service.
    #[error("the secret can't be read for now: {detail}")]
    Unavailable { code: String, detail: String },
    /// It doesn't: not allowed, not there, no credentials.
    #[error("the secret can't be read: {detail}")]
    Refused { code: String, detail: String },
    /// It was read, and isn't what RDS writes.
    #[error("{0}")]
    Malformed(String),
}

impl SecretError {
    /// Secrets Manager's code, or a word for what happened on the way.
    pub fn code(&self) -> &str {
        match self {
            Self::Unavailable { code, .. } | Self::Refused { code, .. } => code,
            Self::Malformed(_) => "malformed_secret",
        }
    }
}

/// The secret's text. It is asked for so seldom that nothing of the client is kept: a connection that rested while
/// the sandbox was frozen would only cost time.
pub(super) async fn fetch(arn: &str) -> Result<String, SecretError> {
    let aws = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(TIMEOUT)
        .build();
    let config = aws_sdk_secretsmanager::config::Builder::from(&aws)
        .timeout_config(timeouts)
        .build();
    let answer = Client::from_conf(config)
        .get_secret_value()
        .secret_id(arn)
        .send()
        .await
        .map_err(|error| meaning(&error))?;
    answer.secret_string.ok_or_else(|| {
        SecretError::Malformed("the secret is binary, and no JSON text as RDS writes it".to_owned())
    })
}

/// <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html#API_GetSecretValue_Errors>
fn meaning(error: &SdkError<GetSecretValueError>) -> SecretError {
    let code = code(error);
    let detail = match error.message() {
        // Whose name is in the ARN of a session, may be anybody's address.
        Some(message) if !message.contains('@') => format!("{code}: {message}"),
        _ => code.clone(),
    };
    let passes = match error {
        SdkError::ConstructionFailure(_) => false,
        SdkError::DispatchFailure(_) => !without_credentials(error),
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            status >= 500 || status == 429 || THROTTLED.contains(&code.as_str())
        }
        _ => true,
    };
    if passes {
        SecretError::Unavailable { code, detail }
    } else {
        SecretError::Refused { code, detail }
    }
}

const THROTTLED: [&str; 5] = [
    "ThrottlingException",
    "Throttling",
    "TooManyRequestsException",
    "RequestLimitExceeded",
    "RequestThrottled",
];

fn code(error: &SdkError<GetSecretValueError>) -> String {
    if let Some(code) = error.code() {
        return code.to_owned();
    }
    match error {
        SdkError::ConstructionFailure(_) => "RequestNotBuilt".to_owned(),
        SdkError::TimeoutError(_) => "Timeout".to_owned(),
        SdkError::DispatchFailure(_) if without_credentials(error) => {
            "CredentialsNotLoaded".to_owned()
        }
        SdkError::DispatchFailure(failure) if failure.is_timeout() => "Timeout".to_owned(),
        SdkError::DispatchFailure(_) => "ConnectionFailed".to_owned(),
        SdkError::ServiceError(answer) => format!("Http{}", answer.raw().status().as_u16()),
        _ => "UnreadableAnswer".to_owned(),
    }
}

fn without_credentials(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| cause.is::<CredentialsError>())
}
