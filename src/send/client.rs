//! The client of SES: no retries of the SDK, no connection that outlives an invocation.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::config::StalledStreamProtectionConfig;
use aws_sdk_sesv2::config::retry::RetryConfig;
use aws_sdk_sesv2::types::{
    Body, Content, Destination, EmailContent, Message, MessageHeader, MessageTag,
};
use aws_smithy_http_client::tls;
use futures_util::FutureExt as _;

use crate::clock::Deadline;
use crate::compose::Email;
use crate::metrics::{Time, timed};

use super::SesMessageId;
use super::underway::Underway;
use super::verdict::{Cause, SendVerdict, verdict};

/// With less time than this an email is not sent: SES might answer too late, and its outcome be unknown.
pub const LEAST_TIME: Duration = Duration::from_secs(2);

/// Connecting takes milliseconds. It is given up before the least time of a send is over, so that a send that
/// never got further is known not to have been one.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1500);

/// Before the second and the third attempt, where there may be more than one. The transaction is held open
/// meanwhile, so they are short; what needs longer comes back from the queue.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(1000)];

/// What all invocations of this sandbox share.
pub struct Mailer {
    config: aws_sdk_sesv2::Config,
    configuration_set: Option<String>,
}

/// SES, for one invocation.
pub struct Sender<'a> {
    client: Client,
    configuration_set: Option<&'a str>,
}

impl Mailer {
    /// Asks nobody yet: credentials and region come from the environment.
    pub fn new(aws: &aws_config::SdkConfig, configuration_set: Option<String>) -> Self {
        let config = aws_sdk_sesv2::config::Builder::from(aws)
            // A retry after a lost answer would be a second email.
            .retry_config(RetryConfig::disabled())
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(CONNECT_TIMEOUT)
                    .build(),
            )
            // It would end a slow but healthy answer.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        Self {
            config,
            configuration_set,
        }
    }

    /// A client with connections of its own. One that rested while the sandbox was frozen may have been closed
    /// by SES meanwhile, and a request on it fails just as one whose answer was lost.
    pub fn for_invocation(&self) -> Sender<'_> {
        let http_client = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(
                tls::rustls_provider::CryptoMode::AwsLc,
            ))
            .build_https();
        let config = self.config.to_builder().http_client(http_client).build();
        Sender {
            client: Client::from_conf(config),
            configuration_set: self.configuration_set.as_deref(),
        }
    }
}

impl Sender<'_> {
    /// Sends the email. A request that SES certainly did not take, for a reason that passes, is repeated after
    /// a short pause while there is time; any other is made once. None is made without its claim: the connection
    /// that holds it can be lost meanwhile, and then another worker may be sending.
    pub async fn send(
        &self,
        email: &Email,
        timeout: Duration,
        claim_holds: impl Fn() -> bool,
    ) -> SendVerdict {
        let deadline = Deadline::after(timeout);
        for pause in PAUSES {
            if !claim_holds() {
                return SendVerdict::ClaimLost;
            }
            let verdict = self.attempt(email, deadline.left()).await;
            // Up to half is taken off at random: what was throttled together must not return together.
            let pause = pause.mul_f64(1.0 - fastrand::f64() / 2.0);
            if !matches!(verdict, SendVerdict::NotSent(_)) || deadline.left() < pause + LEAST_TIME {
                return verdict;
            }
            tokio::time::sleep(pause).await;
        }
        if !claim_holds() {
            return SendVerdict::ClaimLost;
        }
        self.attempt(email, deadline.left()).await
    }

    /// One request; after `timeout` its outcome is unknown.
    async fn attempt(&self, email: &Email, timeout: Duration) -> SendVerdict {
        let request = match self.request(email) {
            Ok(request) => request,
            Err(error) => {
                return SendVerdict::NotSentOurs(Cause::new("InvalidRequest", error.to_string()));
            }
        };
        let underway = Underway::default();
        let sent = request.customize().interceptor(underway.clone()).send();
        let sent = tokio::time::timeout(timeout, AssertUnwindSafe(sent).catch_unwind());
        match timed(Time::Ses, sent).await {
            Err(_) if underway.is_set() => {
                SendVerdict::Unknown(Cause::new("Timeout", "no answer from SES in time"))
            }
            Err(_) => SendVerdict::NotSent(Cause::new("Timeout", "no request was made in time")),
            Ok(Err(_)) if underway.is_set() => {
                SendVerdict::Unknown(Cause::new("panic", "the SDK panicked"))
            }
            // As it does over a variable of its own that is set to nothing.
            Ok(Err(_)) => SendVerdict::NotSentOurs(Cause::new("panic", "the SDK panicked")),
            Ok(Ok(Err(error))) => verdict(&error, underway.is_set()),
            Ok(Ok(Ok(answer))) => match answer.message_id().and_then(SesMessageId::parse) {
                Some(id) => SendVerdict::Accepted(id),
                None => SendVerdict::Unknown(Cause::new(
                    "NoMessageId",
                    "SES answered with success but without a message id",
                )),
            },
        }
    }

    fn request(
        &self,
        email: &Email,
    ) -> Result<
        aws_sdk_sesv2::operation::send_email::builders::SendEmailFluentBuilder,
        aws_sdk_sesv2::error::BuildError,
    > {
        let mut message = Message::builder().subject(utf8(&email.subject)?).body(
            Body::builder()
                .text(utf8(&email.text)?)
                .html(utf8(&email.html)?)
                .build(),
        );
        for (name, value) in &email.headers {
            message = message.headers(MessageHeader::builder().name(name).value(value).build()?);
        }
        let mut request = self
            .client
            .send_email()
            .from_email_address(email.from.header_value())
            .destination(
                Destination::builder()
                    .to_addresses(email.to.header_value())
                    .build(),
            )
            .content(EmailContent::builder().simple(message.build()).build())
            .set_reply_to_addresses(
                email
                    .reply_to
                    .as_ref()
                    .map(|mailbox| vec![mailbox.header_value()]),
            )
            .set_configuration_set_name(self.configuration_set.map(str::to_owned));
        for (name, value) in &email.tags {
            request = request.email_tags(MessageTag::builder().name(*name).value(value).build()?);
        }
        Ok(request)
    }
}

fn utf8(data: &str) -> Result<Content, aws_sdk_sesv2::error::BuildError> {
    Content::builder().data(data).charset("UTF-8").build()
}
