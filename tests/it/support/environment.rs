//! The environment of a function's process: what Lambda sets, what the stack's template sets, and nothing of ours.

use std::collections::BTreeMap;
use std::process::Command;

use super::mode::Mode;
use super::ses::Ses;
use super::sqs::Sqs;

/// The sender of every test that doesn't say otherwise.
pub const MAIL_FROM: &str = "Job Board <no-reply@example.com>";

/// A port of this machine on which nobody listens.
pub const NOWHERE: &str = "http://127.0.0.1:9";

#[derive(Clone, Debug)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// All that `notify` needs, and no more.
    pub fn notify(database_url: &str, ses: &Ses) -> Self {
        Self::bare()
            .with("DATABASE_URL", database_url)
            .with("MAIL_FROM", MAIL_FROM)
            .with("AWS_ENDPOINT_URL_SESV2", &ses.url())
            .with("CLAIM_MODE", Mode::of_this_run().name())
    }

    /// All that `feedback` needs.
    pub fn feedback(database_url: &str, sqs: &Sqs) -> Self {
        Self::bare()
            .with("DATABASE_URL", database_url)
            .with("AWS_ENDPOINT_URL_SQS", &sqs.url())
    }

    /// All that `cleanup` needs.
    pub fn cleanup(database_url: &str) -> Self {
        Self::bare().with("DATABASE_URL", database_url)
    }

    /// All that `migrate` needs.
    pub fn migrate(database_url: &str) -> Self {
        Self::bare().with("DATABASE_URL", database_url)
    }

    /// What every Lambda has: a region and credentials, here good for nothing.
    fn bare() -> Self {
        Self(BTreeMap::new())
            .with("AWS_REGION", "eu-west-1")
            .with("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .with("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI-EXAMPLE")
            .with("AWS_SESSION_TOKEN", "session-token-EXAMPLE")
            // Whatever a test doesn't stand in for is asked of nobody: never of the real AWS.
            .with("AWS_ENDPOINT_URL", NOWHERE)
    }

    /// What Lambda adds for the process that it starts.
    pub fn in_lambda(self, handler: &str, runtime_api: &str) -> Self {
        let mut environment = self
            .with("AWS_LAMBDA_RUNTIME_API", runtime_api)
            .with("AWS_LAMBDA_FUNCTION_NAME", &format!("onemail-{handler}"))
            .with("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .with("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .with(
                "AWS_LAMBDA_LOG_GROUP_NAME",
                &format!("/aws/lambda/onemail-{handler}"),
            )
            .with(
                "AWS_LAMBDA_LOG_STREAM_NAME",
                "2026/01/01/[$LATEST]0123456789abcdef",
            )
            .with("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
            .with("LAMBDA_TASK_ROOT", "/var/task")
            .with("TZ", ":UTC");
        for (name, value) in [("_HANDLER", handler), ("AWS_LAMBDA_LOG_FORMAT", "JSON")] {
            environment
                .0
                .entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
        environment
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    pub fn value(&self, name: &str) -> &str {
        &self.0[name]
    }

    /// The binary under test, with this environment alone, in a directory that holds nothing of the project: what
    /// it needs it must have inside.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onemail"));
        command.env_clear().envs(&self.0).current_dir("/");
        command
    }
}
