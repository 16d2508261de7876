//! The function's sandboxes and the event source mapping before them: real processes that get batches, answer, die,
//! and are replaced.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::queue::{Delivery, Queue};
use crate::support::environment::Environment;
use crate::support::event::batch;
use crate::support::lambda::{Failure, Sandbox};
use crate::tally::Tally;
use crate::victims::{Victim, Victims};

/// Of the function; the queue's visibility timeout is longer.
pub const TIMEOUT: Duration = Duration::from_secs(8);
const BATCH_SIZE: usize = 10;

/// A kind of worker.
pub struct Crew {
    pub handler: &'static str,
    /// The first letter of its workers' names.
    pub letter: char,
    pub queue: Arc<Queue>,
    pub victims: Arc<Victims>,
    /// The environment of the worker with this name.
    pub environment: Box<dyn Fn(&str) -> Environment + Send + Sync>,
    /// What the workers' lines say, and how invocations ended.
    pub tally: Arc<Tally>,
}

/// One after another works in this place, until it is closed.
pub async fn work(crew: Arc<Crew>, place: usize, mut closed: watch::Receiver<bool>) {
    let mut generation = 0;
    let mut worker = None;
    loop {
        let deliveries = tokio::select! {
            deliveries = crew.queue.receive(BATCH_SIZE) => deliveries,
            _ = closed.wait_for(|closed| *closed) => break,
        };
        let at_work = match worker.take() {
            Some(worker) if crew.is_alive(&worker) => worker,
            dead => {
                if let Some(dead) = dead {
                    crew.bury(dead).await;
                }
                generation += 1;
                crew.hire(format!("{}{place}-{generation}", crew.letter))
                    .await
            }
        };
        worker = crew.hand_over(at_work, &deliveries).await;
    }
    if let Some(worker) = worker {
        crew.bury(worker).await;
    }
}

struct Worker {
    name: String,
    sandbox: Arc<Sandbox>,
}

impl Crew {
    async fn hire(&self, name: String) -> Worker {
        let environment = (self.environment)(&name);
        let sandbox = Arc::new(Sandbox::start_function(self.handler, &environment).await);
        self.victims.add(&name, Victim::Process(sandbox.clone()));
        Worker { name, sandbox }
    }

    fn is_alive(&self, worker: &Worker) -> bool {
        self.victims.knows(&worker.name)
    }

    /// Gives the worker back, if it still lives.
    async fn hand_over(&self, worker: Worker, deliveries: &[Delivery]) -> Option<Worker> {
        let records = deliveries
            .iter()
            .map(|delivery| delivery.record(self.queue.name));
        let invocation = worker.sandbox.begin_within(batch(records), TIMEOUT);
        match invocation.value().await {
            Ok(answer) => {
                let failed = failed(&answer);
                for delivery in deliveries {
                    if !failed.contains(&delivery.message_id.as_str()) {
                        self.queue.delete(delivery);
                    }
                }
                return Some(worker);
            }
            // The messages come back by themselves.
            Err(Failure::Exited) if self.victims.knows(&worker.name) => {
                self.tally.count("workers that ended by themselves");
            }
            Err(Failure::Exited) => {}
            Err(Failure::TimedOut) => {
                self.tally.count("deadlines passed");
                self.victims.doom(&worker.name);
            }
            Err(Failure::Reported(error)) => {
                self.tally.count("invocations failed");
                self.tally.count(&format!("failed: {}", error.message));
            }
        }
        self.bury(worker).await;
        None
    }

    /// Sees that it is dead, and counts what its lines tell of.
    async fn bury(&self, worker: Worker) {
        self.victims.remove(&worker.name);
        worker.sandbox.kill().await;
        for line in worker.sandbox.logs.to_the_end().await {
            if !line.outcome().is_empty() {
                let outcome = format!("{} {}", self.handler, line.outcome());
                self.tally.count(&outcome);
                if let Some(reason) = line.field("reason").as_str() {
                    self.tally.count(&format!("{outcome}: {reason}"));
                }
            }
            if line.text.contains("panicked") || line.text.contains("onemail stopped") {
                self.tally.count(&format!("fault: {}", line.text));
            }
        }
    }
}

fn failed(answer: &Value) -> Vec<&str> {
    let failures = answer["batchItemFailures"].as_array();
    let failures = failures.unwrap_or_else(|| panic!("no list of failures in {answer}"));
    failures
        .iter()
        .map(|failure| failure["itemIdentifier"].as_str().expect("an identifier"))
        .collect()
}
