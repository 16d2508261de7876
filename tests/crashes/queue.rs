//! A queue by SQS's rules, as Lambda's event source mapping works on it.
//!
//! A message that was handed out is invisible for the queue's visibility timeout, or for as long as the function asked;
//! it is deleted when the function has answered without naming it, and comes back otherwise. Time is the test's.

use serde_json::{Value, json};

use crate::support::event::{Record, batch};
use crate::support::lambda::Answer;
use crate::support::sqs::Sqs;

/// Seconds since the test began.
pub type Time = u64;

pub struct Queue {
    name: &'static str,
    visibility_timeout: u64,
    messages: Vec<Message>,
    ever: usize,
}

/// What was handed out together.
pub struct Handed {
    pub ids: Vec<String>,
    pub batch: Value,
}

struct Message {
    id: String,
    body: String,
    receive_count: u32,
    received_at: Time,
    visible_at: Time,
}

impl Message {
    /// Each receive has its own; what was said with an older one counts no more.
    fn receipt_handle(&self) -> String {
        format!("{}-received-{}", self.id, self.receive_count)
    }
}

impl Queue {
    pub fn new(name: &'static str, visibility_timeout: u64) -> Self {
        Self {
            name,
            visibility_timeout,
            messages: Vec::new(),
            ever: 0,
        }
    }

    pub fn put(&mut self, body: &Value, visible_at: Time) {
        self.ever += 1;
        self.messages.push(Message {
            id: format!("{}-{}", self.name, self.ever),
            body: body.to_string(),
            receive_count: 0,
            received_at: visible_at,
            visible_at,
        });
    }

    /// When there is something to hand out; `None` once all is deleted.
    pub fn next_at(&self) -> Option<Time> {
        self.messages.iter().map(|message| message.visible_at).min()
    }

    /// Hands out what is visible.
    pub fn receive(&mut self, now: Time) -> Handed {
        let mut ids = Vec::new();
        let visible = self
            .messages
            .iter_mut()
            .filter(|message| message.visible_at <= now);
        let records = visible.map(|message| {
            message.receive_count += 1;
            message.received_at = now;
            message.visible_at = now + self.visibility_timeout;
            ids.push(message.id.clone());
            Record::with_body(&message.id, &message.body)
                .with("receiptHandle", message.receipt_handle())
                .with(
                    "eventSourceARN",
                    format!("arn:aws:sqs:eu-west-1:123456789012:{}", self.name),
                )
                .with(
                    "attributes",
                    json!({ "ApproximateReceiveCount": message.receive_count.to_string() }),
                )
        });
        let batch = batch(records.collect::<Vec<_>>());
        Handed { ids, batch }
    }

    /// The answer has come: what it doesn't name of what was handed out is deleted.
    pub fn answered(&mut self, ids: &[String], answer: &Answer, sqs: &Sqs) {
        self.change_visibility(sqs);
        self.messages
            .retain(|message| !ids.contains(&message.id) || answer.failed.contains(&message.id));
    }

    /// The answer never came: what was handed out comes back.
    pub fn unanswered(&mut self, sqs: &Sqs) {
        self.change_visibility(sqs);
    }

    /// What the function told SQS before it answered, or died.
    fn change_visibility(&mut self, sqs: &Sqs) {
        for message in &mut self.messages {
            if let Some(delay) = sqs.delays_of(&message.receipt_handle()).last() {
                message.visible_at = message.received_at + delay;
            }
        }
    }
}
