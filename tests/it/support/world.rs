//! The world in which most tests begin: a job board, an SES that accepts, an SQS, and one sandbox that waits for work.

use serde_json::Value;

use super::database::{Database, server_port};
use super::environment::Environment;
use super::lambda::Sandbox;
use super::mail::SendEmail;
use super::mode::Mode;
use super::proxy::Proxy;
use super::ses::Ses;
use super::sqs::Sqs;

pub struct World {
    pub database: Database,
    pub ses: Ses,
    pub sqs: Sqs,
    pub sandbox: Sandbox,
    /// Of the sandbox.
    pub environment: Environment,
}

impl World {
    pub async fn start() -> Self {
        Self::start_with(|environment| environment).await
    }

    /// With a change to the function's environment.
    pub async fn start_with(change: impl FnOnce(Environment) -> Environment) -> Self {
        Self::start_with_sqs(|environment, _| change(environment)).await
    }

    pub async fn start_with_sqs(change: impl FnOnce(Environment, &Sqs) -> Environment) -> Self {
        let database = Database::create().await;
        let url = database.url();
        Self::on(database, &url, change).await
    }

    /// For what only one mode does.
    pub async fn start_in(mode: Mode) -> Self {
        Self::start_with(|environment| environment.with("CLAIM_MODE", mode.name())).await
    }

    /// With a proxy between the function and Postgres.
    pub async fn start_with_proxy() -> (Self, Proxy) {
        Self::start_with_proxy_in(Mode::of_this_run()).await
    }

    pub async fn start_with_proxy_in(mode: Mode) -> (Self, Proxy) {
        let database = Database::create().await;
        let proxy = Proxy::start(server_port()).await;
        let url = database.url_at(proxy.port());
        let in_mode =
            |environment: Environment, _: &Sqs| environment.with("CLAIM_MODE", mode.name());
        let world = Self::on(database, &url, in_mode).await;
        (world, proxy)
    }

    async fn on(
        database: Database,
        url: &str,
        change: impl FnOnce(Environment, &Sqs) -> Environment,
    ) -> Self {
        let (ses, sqs) = (Ses::start().await, Sqs::start().await);
        let environment = Environment::notify(url, &ses).with("AWS_ENDPOINT_URL_SQS", &sqs.url());
        let environment = change(environment, &sqs);
        let sandbox = Sandbox::start(&environment).await;
        Self {
            database,
            ses,
            sqs,
            sandbox,
            environment,
        }
    }

    /// Hands over a message about the event, which must be handled, and gives the one email that leaves for it.
    pub async fn email_for(&self, event: &Value) -> SendEmail {
        let before = self.ses.emails().len();
        self.sandbox.handles("m-1", event).await;
        let mut emails = self.ses.emails().split_off(before);
        assert_eq!(emails.len(), 1, "emails that left for {event}");
        emails.remove(0)
    }

    /// Another worker on the same queue.
    pub async fn another_sandbox(&self) -> Sandbox {
        Sandbox::start(&self.environment).await
    }

    /// Another worker on the same queue, perhaps in the other mode.
    pub async fn sandbox_in(&self, mode: Mode) -> Sandbox {
        let environment = self.environment.clone();
        Sandbox::start(&environment.with("CLAIM_MODE", mode.name())).await
    }

    /// Asserts what the ledger says where some outcomes are unknown: transaction mode has freed their keys, and lease
    /// mode keeps their rows `sending`.
    #[track_caller]
    pub fn assert_claims_and_doubts<'a>(
        &self,
        settled: &[(&'a str, &'a str)],
        in_doubt: &[&'a str],
    ) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let mut expected = settled.to_vec();
        if self.environment.value("CLAIM_MODE") == Mode::Lease.name() {
            expected.extend(in_doubt.iter().map(|event_id| (*event_id, "sending")));
        }
        expected.sort_unstable();
        async move { self.database.assert_claims_at(caller, &expected).await }
    }
}
