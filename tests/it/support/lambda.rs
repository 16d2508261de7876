//! A Lambda sandbox: one process of the function, to which invocations are handed one after the other.

use std::panic::Location;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::environment::Environment;
use super::event::{Record, batch};
use super::logs::Logs;
use super::patience::within_reason;
use super::runtime_api::{Ending, ReportedError, RuntimeApi};

/// The time of an invocation whose deadline is not what the test is about.
const AMPLE: Duration = Duration::from_secs(30);
/// The same for a batch of which each record takes its time on a slow machine.
pub const AMPLE_FOR_MANY: Duration = Duration::from_secs(300);

pub struct Sandbox {
    runtime_api: RuntimeApi,
    process_id: Pid,
    exit: watch::Receiver<Option<ExitStatus>>,
    pub logs: Logs,
}

/// Why an invocation has no answer.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The function reported an error: SQS delivers the whole batch again.
    Reported(ReportedError),
    /// The deadline came first. Lambda would have killed the sandbox.
    TimedOut,
    /// The process ended.
    Exited,
}

impl Failure {
    /// What the function says of the failure.
    pub fn message(&self) -> &str {
        &self.reported().message
    }

    pub fn reported(&self) -> &ReportedError {
        match self {
            Self::Reported(error) => error,
            Self::TimedOut | Self::Exited => {
                panic!("the function did not say why it failed: {self:?}")
            }
        }
    }
}

/// What `notify` answers: which messages are to be delivered again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// In the order of the answer.
    pub failed: Vec<String>,
}

impl Answer {
    /// Reads the answer as strictly as anybody might: nothing but the list, nothing in it but identifiers.
    fn parse(answer: &Value) -> Self {
        let failures = answer["batchItemFailures"].as_array();
        let failures =
            failures.unwrap_or_else(|| panic!("no list of failures in the answer {answer}"));
        let failed: Vec<String> = failures
            .iter()
            .map(|failure| {
                failure["itemIdentifier"]
                    .as_str()
                    .expect("an identifier is a string")
                    .to_owned()
            })
            .collect();
        let items: Vec<Value> = failed
            .iter()
            .map(|id| json!({ "itemIdentifier": id }))
            .collect();
        assert_eq!(
            answer,
            &json!({ "batchItemFailures": items }),
            "more in the answer than Lambda knows"
        );
        assert!(
            !failed.contains(&String::new()),
            "an empty identifier fails the whole batch"
        );
        Self { failed }
    }

    #[track_caller]
    pub fn assert_none_failed(&self) {
        self.assert_failed(&[]);
    }

    #[track_caller]
    pub fn assert_failed(&self, message_ids: &[&str]) {
        self.assert_failed_at(Location::caller(), message_ids);
    }

    /// The same for an assertion that stands there.
    fn assert_failed_at(&self, caller: &Location<'_>, message_ids: &[&str]) {
        let mut failed: Vec<&str> = self.failed.iter().map(String::as_str).collect();
        let mut expected = message_ids.to_vec();
        failed.sort_unstable();
        expected.sort_unstable();
        assert!(
            failed == expected,
            "{caller}: {failed:?} were reported as failed, not {expected:?}"
        );
    }
}

/// An invocation that has been handed over.
pub struct Running {
    ending: oneshot::Receiver<Ending>,
    deadline: Instant,
    exit: watch::Receiver<Option<ExitStatus>>,
}

impl Running {
    pub async fn value(mut self) -> Result<Value, Failure> {
        tokio::select! {
            biased;
            ending = self.ending => match ending {
                Ok(ending) => ending.map_err(Failure::Reported),
                Err(_) => Err(Failure::Exited),
            },
            _ = self.exit.wait_for(Option::is_some) => Err(Failure::Exited),
            () = tokio::time::sleep_until(self.deadline) => Err(Failure::TimedOut),
        }
    }

    pub async fn answer(self) -> Answer {
        match self.value().await {
            Ok(answer) => Answer::parse(&answer),
            Err(failure) => panic!("no answer: {failure:?}"),
        }
    }
}

impl Sandbox {
    /// A sandbox of `notify` that is ready for work.
    pub async fn start(environment: &Environment) -> Self {
        Self::start_function("notify", environment).await
    }

    pub async fn start_function(handler: &str, environment: &Environment) -> Self {
        let sandbox = Self::spawn(handler, environment).await;
        let mut exit = sandbox.exit.clone();
        let ready = async {
            tokio::select! {
                () = sandbox.runtime_api.asked(1) => {}
                _ = exit.wait_for(Option::is_some) => panic!("it ended at start:\n{}", sandbox.logs.text()),
            }
        };
        within_reason("the first request for work", ready).await;
        sandbox
    }

    /// Starts the process without expecting that it will ever ask for work.
    pub async fn spawn(handler: &str, environment: &Environment) -> Self {
        let (runtime_api, mut process) = Self::launch(handler, environment).await;
        let logs = Logs::new();
        logs.collect(process.stdout.take().expect("it is piped"));
        logs.collect(process.stderr.take().expect("it is piped"));
        Self::watch(runtime_api, process, logs)
    }

    /// A sandbox whose output goes nowhere: whatever it writes fails.
    pub async fn start_without_output(environment: &Environment) -> Self {
        let (runtime_api, mut process) = Self::launch("notify", environment).await;
        drop((process.stdout.take(), process.stderr.take()));
        let sandbox = Self::watch(runtime_api, process, Logs::new());
        sandbox.asked_for_work(1).await;
        sandbox
    }

    async fn launch(handler: &str, environment: &Environment) -> (RuntimeApi, Child) {
        let runtime_api = RuntimeApi::start().await;
        let environment = environment
            .clone()
            .in_lambda(handler, runtime_api.address());
        let mut command = Command::from(environment.command());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let process = command.kill_on_drop(true).spawn();
        (runtime_api, process.expect("the binary under test starts"))
    }

    fn watch(runtime_api: RuntimeApi, mut process: Child, logs: Logs) -> Self {
        let process_id = process.id().expect("it has not been waited for");
        let process_id = Pid::from_raw(process_id.try_into().expect("ids are positive"));
        let (ended, exit) = watch::channel(None);
        // The task owns the process, so that the end of the test's runtime, however it comes, kills it.
        tokio::spawn(async move { ended.send_replace(process.wait().await.ok()) });
        Self {
            runtime_api,
            process_id,
            exit,
            logs,
        }
    }

    /// Hands the batch over and goes on.
    pub fn begin(&self, event: Value) -> Running {
        self.begin_within(event, AMPLE)
    }

    pub fn begin_within(&self, event: Value, time: Duration) -> Running {
        let deadline = Instant::now() + time;
        Running {
            ending: self.runtime_api.invoke(event, time),
            deadline,
            exit: self.exit.clone(),
        }
    }

    /// Has the function handle a batch, and gives its answer.
    pub async fn invoke(&self, event: Value) -> Answer {
        self.begin(event).answer().await
    }

    pub async fn invoke_within(&self, event: Value, time: Duration) -> Answer {
        self.begin_within(event, time).answer().await
    }

    /// Hands over one message about the event, and asserts that it is not reported: SQS may delete it.
    #[track_caller]
    pub fn handles(&self, message_id: &str, event: &Value) -> impl Future<Output = ()> {
        let (caller, message) = (Location::caller(), Record::new(message_id, event));
        async move {
            let answer = self.invoke(batch([message])).await;
            answer.assert_failed_at(caller, &[]);
        }
    }

    /// Hands over one message about the event, and asserts that it is reported as failed.
    #[track_caller]
    pub fn reports(&self, message_id: &str, event: &Value) -> impl Future<Output = ()> {
        let (caller, message) = (Location::caller(), Record::new(message_id, event));
        async move {
            let answer = self.invoke(batch([message])).await;
            answer.assert_failed_at(caller, &[message_id]);
        }
    }

    /// Has the function handle something of which it can't be expected that it gives the answer of a batch.
    pub async fn try_invoke(&self, event: Value) -> Result<Value, Failure> {
        self.begin(event).value().await
    }

    /// Waits until the function has asked for work so many times since it started.
    pub async fn asked_for_work(&self, times: usize) {
        within_reason("the next request for work", self.runtime_api.asked(times)).await;
    }

    pub fn init_error(&self) -> Option<ReportedError> {
        self.runtime_api.init_error()
    }

    /// Stops the process where it is, as Lambda does between two invocations.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Ends the process as a crash would, and waits until it is gone.
    pub async fn kill(&self) {
        self.signal(Signal::SIGKILL);
        self.exited().await;
    }

    pub async fn exited(&self) -> ExitStatus {
        let mut exit = self.exit.clone();
        let ended = exit.wait_for(Option::is_some);
        let status = within_reason("the end of the process", ended)
            .await
            .expect("the task outlives the process");
        status.expect("waited for it")
    }

    fn signal(&self, signal: Signal) {
        if self.exit.borrow().is_none() {
            // It hasn't been waited for, so the id is still its own; if it has just ended, there's nobody to tell.
            let _ = kill(self.process_id, signal);
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}
