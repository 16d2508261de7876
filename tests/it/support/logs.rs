//! What a process of the function has written, line by line, as Lambda would hand it to CloudWatch.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::watch;

use super::patience::{if_it_comes, within_reason};

#[derive(Clone, Debug)]
pub struct Line {
    pub text: String,
    /// The line as JSON; empty if it is none.
    pub fields: Map<String, Value>,
}

impl Line {
    fn new(text: String) -> Self {
        let fields = serde_json::from_str(&text).unwrap_or_default();
        Self { text, fields }
    }

    pub fn field(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    pub fn level(&self) -> &str {
        self.field("level").as_str().unwrap_or_default()
    }

    pub fn outcome(&self) -> &str {
        self.field("outcome").as_str().unwrap_or_default()
    }

    /// A line for CloudWatch to make a metric of (its embedded metric format), not for people.
    pub fn is_metric(&self) -> bool {
        self.fields.contains_key("_aws")
    }

    fn ends_record_of(&self, event_id: &str) -> bool {
        self.field("event_id") == event_id && !self.outcome().is_empty()
    }
}

#[derive(Clone, Debug)]
pub struct Logs(Arc<watch::Sender<Written>>);

#[derive(Debug, Default)]
struct Written {
    lines: Vec<Line>,
    streams_open: usize,
}

impl Logs {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Written::default())))
    }

    /// Takes in a stream of the process, in the background, to its end.
    pub fn collect(&self, stream: impl AsyncRead + Unpin + Send + 'static) {
        self.0.send_modify(|written| written.streams_open += 1);
        let logs = self.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stream).split(b'\n');
            while let Ok(Some(line)) = lines.next_segment().await {
                let text = String::from_utf8_lossy(&line).into_owned();
                logs.0
                    .send_modify(|written| written.lines.push(Line::new(text)));
            }
            logs.0.send_modify(|written| written.streams_open -= 1);
        });
    }

    pub fn lines(&self) -> Vec<Line> {
        self.0.borrow().lines.clone()
    }

    pub fn text(&self) -> String {
        self.lines()
            .into_iter()
            .map(|line| line.text + "\n")
            .collect()
    }

    /// The lines once the process has ended and all that it wrote is here.
    pub async fn to_the_end(&self) -> Vec<Line> {
        let mut written = self.0.subscribe();
        let end = written.wait_for(|written| written.streams_open == 0);
        within_reason("the end of the logs", end)
            .await
            .expect("the sender is ours")
            .lines
            .clone()
    }

    /// The first line that answers the description; waits for it, since it comes over a pipe and an answer to Lambda
    /// doesn't.
    pub async fn wait_for(&self, description: &str, matches: impl Fn(&Line) -> bool) -> Line {
        let lines = self.wait_for_several(1, description, matches).await;
        lines.into_iter().next().expect("waited for one")
    }

    pub async fn wait_for_several(
        &self,
        count: usize,
        description: &str,
        matches: impl Fn(&Line) -> bool,
    ) -> Vec<Line> {
        let mut written = self.0.subscribe();
        let found = written
            .wait_for(|written| written.lines.iter().filter(|line| matches(line)).count() >= count);
        let what = format!("{count} log line(s): {description}");
        match if_it_comes(found).await {
            Some(written) => {
                let written = written.expect("the sender is ours");
                written
                    .lines
                    .iter()
                    .filter(|line| matches(line))
                    .cloned()
                    .collect()
            }
            None => panic!("waited in vain for {what}; what came:\n{}", self.text()),
        }
    }

    /// The line that ends the record of this event.
    pub async fn outcome_of(&self, event_id: &str) -> Line {
        self.outcomes_of(event_id, 1).await.remove(0)
    }

    /// The lines that end the first `count` records of this event.
    pub async fn outcomes_of(&self, event_id: &str, count: usize) -> Vec<Line> {
        let description = format!("the outcome of event {event_id}");
        self.wait_for_several(count, &description, |line| line.ends_record_of(event_id))
            .await
    }

    /// The line that ends the record that came in this SQS message, also where no event could be read from it.
    pub async fn outcome_of_message(&self, message_id: &str) -> Line {
        let description = format!("the outcome of message {message_id}");
        self.wait_for(&description, |line| {
            line.field("message_id") == message_id && !line.outcome().is_empty()
        })
        .await
    }
}
