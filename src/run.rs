//! The process: inside Lambda it serves invocations, by hand it answers one file.

use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use aws_config::BehaviorVersion;
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde_json::Value;

use crate::cleanup::Cleanup;
use crate::clock::Deadline;
use crate::config::{CleanupConfig, DatabaseConfig, Env, NotifyConfig};
use crate::feedback::Feedback;
use crate::function::Function;
use crate::logging;
use crate::metrics::Metrics;
use crate::migrate::migrate;
use crate::notify::Notifier;

/// By hand there is no deadline of Lambda's; this is the timeout of the template.
const TIMEOUT_BY_HAND: Duration = Duration::from_secs(30);

/// Runs until Lambda ends the sandbox, or for one file by hand.
pub fn run() -> ExitCode {
    let env = Env::of_process();
    let in_lambda = env.get("AWS_LAMBDA_RUNTIME_API").is_some();
    if in_lambda {
        logging::init_in_lambda(&env);
    } else {
        logging::init_by_hand(&env);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("Failed to start the async runtime");
    let result = runtime.and_then(|runtime| {
        runtime.block_on(async {
            if in_lambda {
                serve(&env).await
            } else {
                by_hand(&env).await
            }
        })
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if in_lambda {
                tracing::error!(cause = format!("{error:#}"), "onemail stopped");
            } else {
                complain(&error);
            }
            ExitCode::FAILURE
        }
    }
}

async fn serve(env: &Env) -> anyhow::Result<()> {
    let function = env.get("_HANDLER").unwrap_or_default().parse()?;
    let worker = Arc::new(Worker::new(function, env).await?);
    let metrics = Arc::new(Metrics::in_lambda(env));
    let handler = service_fn(move |event: LambdaEvent<Value>| {
        let worker = Arc::clone(&worker);
        let metrics = Arc::clone(&metrics);
        async move {
            let deadline = Deadline::at(event.context.deadline());
            let answer = worker
                .handle(event.payload, deadline, &event.context.request_id)
                .await;
            metrics.flush();
            answer.map_err(|error| {
                let error = format!("{error:#}");
                tracing::error!(
                    request_id = event.context.request_id,
                    cause = error,
                    "the invocation failed"
                );
                Diagnostic {
                    error_type: "InvocationFailed".to_owned(),
                    error_message: error,
                }
            })
        }
    });
    lambda_runtime::run(handler)
        .await
        .map_err(|error| anyhow::anyhow!("The Lambda runtime stopped: {error}"))
}

async fn by_hand(env: &Env) -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(function), Some(file), None) = (arguments.next(), arguments.next(), arguments.next())
    else {
        bail!(
            "expected a function (notify, feedback, cleanup, migrate) and a file with its payload, \
             `-` for standard input: onemail notify events/status_changed.json"
        );
    };
    let function: Function = function.parse()?;
    let payload = read(&file).with_context(|| format!("Failed to read {file}"))?;
    let worker = Worker::new(function, env).await?;
    let answer = worker
        .handle(payload, Deadline::after(TIMEOUT_BY_HAND), "by-hand")
        .await?;
    print(&answer);
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "the answer is what standard output is for"
)]
fn print(answer: &Value) {
    println!("{answer}");
}

#[expect(
    clippy::print_stderr,
    reason = "the one line that says why the process stopped"
)]
fn complain(error: &anyhow::Error) {
    eprintln!("onemail: {error:#}");
}

fn read(file: &str) -> anyhow::Result<Value> {
    let mut text = String::new();
    if file == "-" {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        text = std::fs::read_to_string(file)?;
    }
    serde_json::from_str(&text).context("it is not JSON")
}

/// What the SDK reads from the environment; nobody is asked yet.
async fn aws() -> aws_config::SdkConfig {
    aws_config::load_defaults(BehaviorVersion::latest()).await
}

/// The function that this process is, ready to be invoked.
enum Worker {
    Notify(Box<Notifier>),
    Feedback(Box<Feedback>),
    Cleanup(Cleanup),
    Migrate(Box<DatabaseConfig>),
}

impl Worker {
    async fn new(function: Function, env: &Env) -> anyhow::Result<Self> {
        Ok(match function {
            Function::Notify => {
                let config = NotifyConfig::read(env)?;
                Self::Notify(Box::new(Notifier::new(config, &aws().await)?))
            }
            Function::Feedback => {
                let config = DatabaseConfig::read(env)?;
                Self::Feedback(Box::new(Feedback::new(&config, &aws().await)?))
            }
            Function::Migrate => Self::Migrate(Box::new(DatabaseConfig::read(env)?)),
            Function::Cleanup => Self::Cleanup(Cleanup::new(&CleanupConfig::read(env)?)?),
        })
    }

    async fn handle(
        &self,
        payload: Value,
        deadline: Deadline,
        request_id: &str,
    ) -> anyhow::Result<Value> {
        // Each on the heap: the runtime moves what it runs from layer to layer, and all of them together, unoptimized,
        // don't fit on the stack.
        let answer = match self {
            Self::Notify(notifier) => {
                let handled = Box::pin(notifier.handle(payload, deadline, request_id));
                serde_json::to_value(handled.await?)
            }
            Self::Feedback(feedback) => {
                let handled = Box::pin(feedback.handle(payload, deadline, request_id));
                serde_json::to_value(handled.await?)
            }
            Self::Cleanup(cleanup) => {
                serde_json::to_value(Box::pin(cleanup.handle(deadline)).await?)
            }
            Self::Migrate(config) => {
                serde_json::to_value(Box::pin(migrate(config, deadline)).await?)
            }
        };
        answer.context("Failed to write the answer")
    }
}
