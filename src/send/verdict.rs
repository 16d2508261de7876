//! The one place that decides what an error of SES means.

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_sesv2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sesv2::operation::send_email::SendEmailError;

use crate::causes::{causes, told, without_addresses};

use super::SesMessageId;

/// How a send ended.
#[derive(Debug, PartialEq, Eq)]
pub enum SendVerdict {
    /// SES took the email: it is sent, whatever happens to us.
    Accepted(SesMessageId),
    /// It was not sent: there was no claim any more.
    ClaimLost,
    /// It was not sent, for a reason that passes.
    NotSent(Cause),
    /// It was not sent, and will not be until whoever operates this acts.
    NotSentOurs(Cause),
    /// SES will never take this email.
    Refused(Cause),
    /// Nobody knows whether it was sent.
    Unknown(Cause),
}

/// What SES, or the way to it, said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// SES's error code, or a word for what happened on the way.
    pub code: String,
    /// Without addresses.
    pub detail: String,
}

impl Cause {
    pub(crate) fn new(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            detail: detail.into(),
        }
    }
}

#[derive(Clone, Copy)]
enum Class {
    TryAgain,
    Ours,
    Never,
    Unknown,
}

/// An error code of SES, and a part of its message where the code alone doesn't decide.
type Row = (&'static str, Option<&'static str>, Class);

/// The first row that fits decides. Sources: the errors of `SendEmail`
/// (<https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html>), those of any AWS request
/// (<https://docs.aws.amazon.com/ses/latest/APIReference-V2/CommonErrors.html>), and the messages that SES
/// documents (<https://docs.aws.amazon.com/ses/latest/dg/troubleshoot-error-messages.html>).
const TABLE: &[Row] = &[
    // The account's daily quota comes as a throttling error, but only tomorrow or a raised quota cures it.
    ("TooManyRequestsException", Some("quota"), Class::Ours),
    ("ThrottlingException", Some("quota"), Class::Ours),
    ("Throttling", Some("quota"), Class::Ours),
    // "Maximum sending rate exceeded."
    ("TooManyRequestsException", None, Class::TryAgain),
    ("ThrottlingException", None, Class::TryAgain),
    ("Throttling", None, Class::TryAgain),
    ("RequestLimitExceeded", None, Class::TryAgain),
    ("LimitExceededException", None, Class::Ours),
    // Our account, identity or configuration set.
    ("SendingPausedException", None, Class::Ours),
    ("AccountSuspendedException", None, Class::Ours),
    ("MailFromDomainNotVerifiedException", None, Class::Ours),
    ("NotFoundException", None, Class::Ours),
    // In the sandbox: "Email address is not verified. The following identities failed the check".
    ("MessageRejected", Some("not verified"), Class::Ours),
    ("BadRequestException", Some("not verified"), Class::Ours),
    // The message itself: its content, or an address in it.
    ("MessageRejected", None, Class::Never),
    ("BadRequestException", None, Class::Never),
];

/// What an error of `SendEmail` means. `underway`: the request was made, signed, and given to the network.
pub(super) fn verdict(error: &SdkError<SendEmailError>, underway: bool) -> SendVerdict {
    if !underway {
        return SendVerdict::NotSentOurs(Cause::new(code_of_no_request(error), detail(error)));
    }
    let cause = Cause::new(code(error), detail(error));
    match class(error) {
        Class::TryAgain => SendVerdict::NotSent(cause),
        Class::Ours => SendVerdict::NotSentOurs(cause),
        Class::Never => SendVerdict::Refused(cause),
        Class::Unknown => SendVerdict::Unknown(cause),
    }
}

fn class(error: &SdkError<SendEmailError>) -> Class {
    match error {
        SdkError::DispatchFailure(_) if never_connected(error) => Class::TryAgain,
        // The request, or a part of it, may have been written: SES may have it.
        SdkError::DispatchFailure(_) => Class::Unknown,
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            of_answer(error, status)
        }
        // A time-out after the request was written, or an answer that can't be read.
        _ => Class::Unknown,
    }
}

fn of_answer(error: &SdkError<SendEmailError>, status: u16) -> Class {
    let code = error.code().unwrap_or_default();
    let message = error.message().unwrap_or_default();
    let fits = |(of_code, part, _): &&Row| {
        *of_code == code && part.is_none_or(|part| message.to_ascii_lowercase().contains(part))
    };
    if status >= 500 {
        // It may have been accepted before the failure.
        return Class::Unknown;
    }
    if let Some((_, _, class)) = TABLE.iter().find(fits) {
        return *class;
    }
    match status {
        429 => Class::TryAgain,
        // The email is too large for SES.
        413 => Class::Never,
        // Access denied, expired or wrong credentials, and whatever else SES may come to say: not sent, and
        // not to be given up for it.
        400..=499 => Class::Ours,
        // A success that is an error can't be read.
        _ => Class::Unknown,
    }
}

/// No connection: refused, name not resolved, TLS not agreed, or not in time.
fn never_connected(error: &SdkError<SendEmailError>) -> bool {
    causes(error).any(|source| {
        source
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect)
    })
}

fn without_credentials(error: &SdkError<SendEmailError>) -> bool {
    causes(error).any(|source| source.is::<CredentialsError>())
}

fn code_of_no_request(error: &SdkError<SendEmailError>) -> &'static str {
    if without_credentials(error) {
        "CredentialsNotLoaded"
    } else {
        "RequestNotBuilt"
    }
}

fn code(error: &SdkError<SendEmailError>) -> String {
    if let Some(code) = error.code() {
        return code.to_owned();
    }
    match error {
        SdkError::TimeoutError(_) => "Timeout".to_owned(),
        SdkError::DispatchFailure(_) if never_connected(error) => "NotConnected".to_owned(),
        SdkError::DispatchFailure(_) => "ConnectionLost".to_owned(),
        SdkError::ServiceError(answer) => format!("Http{}", answer.raw().status().as_u16()),
        _ => "UnreadableAnswer".to_owned(),
    }
}

/// SES's message, or the chain of causes.
fn detail(error: &SdkError<SendEmailError>) -> String {
    match error.message() {
        Some(message) => without_addresses(message),
        None => told(error),
    }
}
