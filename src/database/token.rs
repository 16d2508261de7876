//! Tokens of RDS IAM, each of them a password for a quarter of an hour:
//! <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.Connecting.html>.
//!
//! A token is the address of a signed request that nobody makes; RDS checks the signature. Made here with
//! `aws-sigv4`, which the SDK brings anyway, as `aws-sdk-rds` makes it.

use std::time::{Duration, SystemTime};

use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_credential_types::provider::error::CredentialsError;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::config::TokenLogin;

use super::login::Login;

/// As long as RDS allows. It is asked for at the connection's start alone.
const EXPIRES_IN: Duration = Duration::from_secs(900);
/// What RFC 3986 leaves as it is, and so does the signature's definition.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Why there is no token.
#[derive(Clone, Debug, Error)]
pub enum TokenError {
    /// It passes.
    #[error("no credentials to sign a token with for now: {0}")]
    Unavailable(String),
    #[error("a token can't be signed: {0}")]
    Setup(String),
}

pub(super) struct Tokens {
    token: TokenLogin,
    /// All but the password.
    login: Login,
    aws: OnceCell<SdkConfig>,
}

impl Tokens {
    pub fn new(token: TokenLogin, login: Login) -> Self {
        Self {
            token,
            login,
            aws: OnceCell::new(),
        }
    }

    /// With a token of its own.
    pub async fn login(&self) -> Result<Login, TokenError> {
        let aws = self
            .aws
            .get_or_init(|| aws_config::load_defaults(BehaviorVersion::latest()))
            .await;
        let region = aws
            .region()
            .ok_or_else(|| TokenError::Setup("AWS_REGION is not set".to_owned()))?;
        let credentials = aws
            .credentials_provider()
            .ok_or_else(|| TokenError::Setup("there are no AWS credentials".to_owned()))?
            .provide_credentials()
            .await
            .map_err(without_credentials)?;
        let token = sign_token(&self.token, region.as_ref(), credentials, SystemTime::now())?;
        Ok(self.login.with_password(&token))
    }
}

/// The error's own text may hold what a provider read from a file.
fn without_credentials(error: CredentialsError) -> TokenError {
    match error {
        CredentialsError::ProviderTimedOut(_) | CredentialsError::ProviderError(_) => {
            TokenError::Unavailable("their provider failed, or did not answer in time".to_owned())
        }
        _ => TokenError::Setup("there are no AWS credentials".to_owned()),
    }
}

fn sign_token(
    login: &TokenLogin,
    region: &str,
    credentials: Credentials,
    time: SystemTime,
) -> Result<String, TokenError> {
    let mut settings = SigningSettings::default();
    settings.expires_in = Some(EXPIRES_IN);
    settings.signature_location = SignatureLocation::QueryParams;
    let identity = credentials.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("rds-db")
        .time(time)
        .settings(settings)
        .build()
        .map_err(unsignable)?
        .into();
    let address = format!(
        "{}:{}/?Action=connect&DBUser={}",
        login.host,
        login.port,
        encoded(&login.user)
    );
    let url = format!("https://{address}");
    let request = SignableRequest::new("GET", &url, std::iter::empty(), SignableBody::Bytes(&[]))
        .map_err(unsignable)?;
    let (instructions, _) = sign(request, &parameters).map_err(unsignable)?.into_parts();
    Ok(instructions
        .params()
        .iter()
        .fold(address, |token, (name, value)| {
            format!("{token}&{name}={}", encoded(value))
        }))
}

fn encoded(value: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(value, ENCODED)
}

fn unsignable(error: impl std::error::Error) -> TokenError {
    TokenError::Setup(error.to_string())
}
