//! The one place that decides what an error of SES means.

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_sesv2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sesv2::operation::send_email::SendEmailError;

use crate::causes::{causes, told, without_addresses};

use super::SesMessageId;

use ErrorClass::{Ambiguous, Misconfigured, Permanent, Transient};

/// How a send ended.
#[derive(Debug, PartialEq, Eq)]
pub enum SendVerdict {
    /// SES took the email: it is sent, whatever happens to us.
    Accepted(SesMessageId),
    /// It was not sent: there was no claim any more.
    ClaimLost,
    /// It was not sent, for a transient reason.
    NotSent(Cause),
    /// It was not sent, and will not be until the operator acts.
    NotSentOurs(Cause),
    /// SES will never take this email.
    Refused(Cause),
    /// Whether it was sent is not known.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorClass {
    /// The account, an identity, a permission or a quota. Another event would fare no better.
    Misconfigured,
    /// The content of this email, or its recipient.
    Permanent,
    /// It passes by itself.
    Transient,
    /// SES may have taken the email.
    Ambiguous,
}

/// An error code of SES, and a part of its message where the code alone doesn't decide.
type Row = (&'static str, Option<&'static str>, ErrorClass);

/// The codes of an email that SES refuses. They come for the account's state too.
const REJECTED: &str = "MessageRejected";
const BAD_REQUEST: &str = "BadRequestException";

/// What a message about the sending rate says. It passes within seconds.
const OF_THE_RATE: &[&str] = &[
    "sending rate",
    "rate exceeded",
    "throttl",
    "too many requests",
    "try again",
    "temporar",
];

/// What a message about the account and its setup says, whatever the code.
const OF_THE_SETUP: &[&str] = &[
    "not verified",
    "unverified",
    "failed the check",
    "paused",
    "suspended",
    "shut down",
    "under review",
    "disabled",
    "not enabled",
    "not allowed",
    "not authorized",
    "not permitted",
    "quota",
    "sending limit",
    "account",
    "sandbox",
    "configuration set",
    "configurationset",
    "identity",
    "tenant",
    "sending pool",
    "ip pool",
    "dedicated ip",
    "endpoint",
    "credential",
    "subscription",
    "contact list",
    "from address",
    "from email",
    "fromemailaddress",
    "mail from",
    "sender",
    "return path",
    "return-path",
    "reply-to",
    "replyto",
    "feedback forwarding",
];

/// What a message about the content or the recipient says, where the code is that of any bad request.
const OF_THE_EMAIL: &[&str] = &[
    "address",
    "@domain",
    "domain contains",
    "domain starts",
    "domain ends",
    "domain name",
    "missing domain",
    "invalid domain",
    "local part",
    "local name",
    "recipient",
    "destination",
    "header",
    "subject",
    "body",
    "content",
    "charset",
    "message length",
    "message size",
    "message is too",
    "message too",
    "message must",
    "too large",
    "virus",
    "spam",
];

/// The first row that fits decides. Sources: the errors of `SendEmail`
/// (<https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html>), those of any AWS request
/// (<https://docs.aws.amazon.com/ses/latest/APIReference-V2/CommonErrors.html>), and the messages that SES
/// documents (<https://docs.aws.amazon.com/ses/latest/dg/troubleshoot-error-messages.html>).
const TABLE: &[Row] = &[
    // The account's daily quota comes as a throttling error, and only tomorrow or a raised quota cures it.
    ("TooManyRequestsException", Some("quota"), Misconfigured),
    ("ThrottlingException", Some("quota"), Misconfigured),
    ("Throttling", Some("quota"), Misconfigured),
    // "Maximum sending rate exceeded."
    ("TooManyRequestsException", None, Transient),
    ("ThrottlingException", None, Transient),
    ("Throttling", None, Transient),
    ("RequestLimitExceeded", None, Transient),
    ("LimitExceededException", None, Misconfigured),
    // The account, its identities and configuration sets.
    ("SendingPausedException", None, Misconfigured),
    ("AccountSuspendedException", None, Misconfigured),
    ("MailFromDomainNotVerifiedException", None, Misconfigured),
    ("NotFoundException", None, Misconfigured),
];

/// What an error of `SendEmail` means. `underway`: the request was made, signed, and given to the network.
pub(super) fn verdict(error: &SdkError<SendEmailError>, underway: bool) -> SendVerdict {
    if !underway {
        return SendVerdict::NotSentOurs(Cause::new(code_of_no_request(error), detail(error)));
    }
    let cause = Cause::new(code(error), detail(error));
    match class(error) {
        Transient => SendVerdict::NotSent(cause),
        Misconfigured => SendVerdict::NotSentOurs(cause),
        Permanent => SendVerdict::Refused(cause),
        Ambiguous => SendVerdict::Unknown(cause),
    }
}

fn class(error: &SdkError<SendEmailError>) -> ErrorClass {
    match error {
        SdkError::DispatchFailure(_) if never_connected(error) => Transient,
        // The request, or a part of it, may have been written: SES may have it.
        SdkError::DispatchFailure(_) => Ambiguous,
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            let code = error.code().unwrap_or_default();
            class_of_answer(status, code, error.message().unwrap_or_default())
        }
        // A time-out after the request was written, or an answer that can't be read.
        _ => Ambiguous,
    }
}

/// What an answer that is an error means.
fn class_of_answer(status: u16, code: &str, message: &str) -> ErrorClass {
    let message = message.to_ascii_lowercase();
    let says = |part: &&str| message.contains(*part);
    let fits = |(of_code, part, _): &&Row| *of_code == code && part.as_ref().is_none_or(says);
    if status >= 500 {
        // It may have been accepted before the failure.
        return Ambiguous;
    }
    if let Some((_, _, class)) = TABLE.iter().find(fits) {
        return *class;
    }
    match (status, code) {
        (400..=499, REJECTED | BAD_REQUEST) if OF_THE_SETUP.iter().any(says) => Misconfigured,
        (400..=499, REJECTED | BAD_REQUEST) if OF_THE_RATE.iter().any(says) => Transient,
        // "The message can't be sent because it contains invalid content": the code itself names the content.
        (400..=499, REJECTED) => Permanent,
        (400..=499, BAD_REQUEST) if OF_THE_EMAIL.iter().any(says) => Permanent,
        (429, _) => Transient,
        // The email is too large for SES.
        (413, _) => Permanent,
        // Access denied, expired or wrong credentials, and any error that isn't known yet: not sent, and not given
        // up for it.
        (400..=499, _) => Misconfigured,
        // A success that is an error can't be read.
        _ => Ambiguous,
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSED: &str = "Sending paused for this account. For more information, please check the inbox of the \
                          email address associated with your AWS account.";

    #[test]
    fn the_state_of_the_account_is_never_the_fault_of_an_email() {
        for code in [REJECTED, BAD_REQUEST, "InvalidParameterValue", "Something"] {
            for message in [
                PAUSED,
                "Sending suspended for this account.",
                "Your account has been shut down.",
                "Email sending for this configuration set is disabled.",
                "Daily message quota exceeded.",
                "Daily sending quota exceeded",
                "Email address is not verified. The following identities failed the check in region EU-WEST-1: a@b.example",
                "Configuration set <x> does not exist.",
                "Tenant is not associated with the identity.",
            ] {
                assert_eq!(
                    class_of_answer(400, code, message),
                    Misconfigured,
                    "{code}: {message}"
                );
            }
        }
        for code in [REJECTED, BAD_REQUEST] {
            assert_eq!(
                class_of_answer(400, code, "Maximum sending rate exceeded."),
                Transient
            );
        }
        assert_eq!(
            class_of_answer(
                429,
                "TooManyRequestsException",
                "Maximum sending rate exceeded."
            ),
            Transient
        );
        assert_eq!(
            class_of_answer(400, "Throttling", "Daily message quota exceeded."),
            Misconfigured
        );
    }

    #[test]
    fn only_what_names_the_content_or_the_recipient_is_permanent() {
        for (code, message) in [
            (REJECTED, "Email contains a virus."),
            (REJECTED, ""),
            (
                BAD_REQUEST,
                "Address length is more than 320 characters long",
            ),
            (BAD_REQUEST, "Missing final '@domain'"),
            (BAD_REQUEST, "Local address contains control or whitespace"),
            (BAD_REQUEST, "Domain contains control or whitespace"),
            (BAD_REQUEST, "Illegal address"),
            (
                BAD_REQUEST,
                "Message length is more than 41943040 bytes long: '50000000'.",
            ),
            (BAD_REQUEST, "Invalid header value"),
        ] {
            assert_eq!(
                class_of_answer(400, code, message),
                Permanent,
                "{code}: {message}"
            );
        }
        for (code, message) in [
            (BAD_REQUEST, ""),
            (BAD_REQUEST, "No."),
            ("ValidationException", "No."),
            ("", ""),
        ] {
            assert_eq!(
                class_of_answer(400, code, message),
                Misconfigured,
                "{code}: {message}"
            );
        }
        assert_eq!(class_of_answer(413, "", ""), Permanent);
        assert_eq!(class_of_answer(500, REJECTED, PAUSED), Ambiguous);
    }
}
