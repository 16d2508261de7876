//! A stand-in for SQS that keeps what it is told about messages: when they come back, and which are moved.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::event::receipt_handle;
use super::http::{Connection, Request};

const JSON: (&str, &str) = ("content-type", "application/x-amz-json-1.0");
const ACCOUNT: &str = "123456789012";

pub struct Sqs {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    port: u16,
    mood: Mutex<Mood>,
    calls: watch::Sender<Vec<Call>>,
}

/// How requests are answered.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Obliging,
    Denying,
    /// The request is well formed, and none of its entries can be done.
    FailingEntries,
    /// The request is read, and nothing follows.
    Silent,
}

/// A request as it came.
#[derive(Clone, Debug)]
struct Call {
    action: String,
    body: Value,
}

impl Sqs {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener
            .local_addr()
            .expect("a bound socket has an address")
            .port();
        let shared = Arc::new(Shared {
            port,
            mood: Mutex::new(Mood::Obliging),
            calls: watch::Sender::new(Vec::new()),
        });
        tokio::spawn(accept(listener, shared.clone()));
        Self { port, shared }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn queue_url(&self, name: &str) -> String {
        format!("{}/{ACCOUNT}/{name}", self.url())
    }

    /// From now on every request is denied.
    pub fn deny_everything(&self) {
        self.turn(Mood::Denying);
    }

    /// From now on every request is answered with success, and every entry of it with a failure.
    pub fn fail_entries(&self) {
        self.turn(Mood::FailingEntries);
    }

    /// From now on no request is answered.
    pub fn fall_silent(&self) {
        self.turn(Mood::Silent);
    }

    fn turn(&self, mood: Mood) {
        *self.shared.mood.lock().expect("no test panics here") = mood;
    }

    /// The requests so far, by what they asked for.
    pub fn actions(&self) -> Vec<String> {
        let calls = self.shared.calls.borrow();
        calls.iter().map(|call| call.action.clone()).collect()
    }

    /// How many entries each request had that said when messages come back.
    pub fn sizes_of_visibility_requests(&self) -> Vec<usize> {
        let requests = self.calls("ChangeMessageVisibilityBatch");
        let entries = requests.iter().map(|body| body["Entries"].as_array());
        entries.map(|entries| entries.map_or(0, Vec::len)).collect()
    }

    /// In how many seconds the message was said to come back, each time it was said.
    pub fn delays_of(&self, message_id: &str) -> Vec<u64> {
        let receipt_handle = receipt_handle(message_id);
        let entries = self.calls("ChangeMessageVisibilityBatch").into_iter();
        let entries =
            entries.flat_map(|body| body["Entries"].as_array().cloned().unwrap_or_default());
        entries
            .filter(|entry| entry["ReceiptHandle"] == receipt_handle.as_str())
            .map(|entry| {
                entry["VisibilityTimeout"]
                    .as_u64()
                    .expect("a number of seconds")
            })
            .collect()
    }

    /// The messages that were sent, as they came.
    pub fn messages(&self) -> Vec<Value> {
        self.calls("SendMessage")
    }

    fn calls(&self, action: &str) -> Vec<Value> {
        let calls = self.shared.calls.borrow();
        calls
            .iter()
            .filter(|call| call.action == action)
            .map(|call| call.body.clone())
            .collect()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, shared.clone()));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut connection = Connection::new(stream);
    while let Ok(Some(request)) = connection.next_request().await {
        if answer(&mut connection, &request, &shared).await.is_err() {
            return;
        }
    }
}

async fn answer(connection: &mut Connection, request: &Request, shared: &Shared) -> io::Result<()> {
    let target = request.header("x-amz-target").unwrap_or_default();
    let action = target.trim_start_matches("AmazonSQS.").to_owned();
    let body: Value = serde_json::from_slice(&request.body).map_err(io::Error::other)?;
    let mood = *shared.mood.lock().expect("no test panics here");
    shared.calls.send_modify(|calls| {
        calls.push(Call {
            action: action.clone(),
            body: body.clone(),
        });
    });
    if matches!(mood, Mood::Silent) {
        return std::future::pending().await;
    }
    if matches!(mood, Mood::Denying) {
        let message = format!(
            "User: arn:aws:sts::{ACCOUNT}:assumed-role/onemail/sam@example.com is not authorized to perform: \
             sqs:{}",
            action.to_ascii_lowercase()
        );
        let error =
            json!({ "__type": "com.amazonaws.sqs#AccessDeniedException", "message": message });
        return connection
            .reply(403, &[JSON], error.to_string().as_bytes())
            .await;
    }
    if let Some(complaint) = complaint(&action, &body) {
        let error =
            json!({ "__type": "com.amazonaws.sqs#InvalidParameterValue", "message": complaint });
        return connection
            .reply(400, &[JSON], error.to_string().as_bytes())
            .await;
    }
    let answer = match action.as_str() {
        "GetQueueUrl" => {
            let name = body["QueueName"].as_str().unwrap_or_default();
            json!({ "QueueUrl": format!("http://127.0.0.1:{}/{ACCOUNT}/{name}", shared.port) })
        }
        "ChangeMessageVisibilityBatch" => {
            let entries = body["Entries"].as_array().into_iter().flatten();
            if matches!(mood, Mood::FailingEntries) {
                let failed = entries.map(|entry| {
                    json!({ "Id": entry["Id"], "SenderFault": true, "Code": "ReceiptHandleIsInvalid" })
                });
                json!({ "Successful": [], "Failed": failed.collect::<Vec<_>>() })
            } else {
                let done = entries.map(|entry| json!({ "Id": entry["Id"] }));
                json!({ "Successful": done.collect::<Vec<_>>(), "Failed": [] })
            }
        }
        _ => json!({ "MessageId": "0b0c2f3e-6c4d-4a77-9d5e-0f3a8b1c2d4e", "MD5OfMessageBody": "" }),
    };
    connection
        .reply(200, &[JSON], answer.to_string().as_bytes())
        .await
}

/// What SQS itself would not take, so that a test can't pass with a request that production refuses:
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>.
fn complaint(action: &str, body: &Value) -> Option<&'static str> {
    if action != "SendMessage" {
        return None;
    }
    let attributes = body["MessageAttributes"].as_object();
    let is_empty = |value: &Value| value.as_str().is_some_and(str::is_empty);
    let fifo = body["QueueUrl"]
        .as_str()
        .is_some_and(|url| url.ends_with(".fifo"));
    let rules = [
        ("a body", !is_empty(&body["MessageBody"])),
        (
            "at most ten attributes",
            attributes.is_none_or(|attributes| attributes.len() <= 10),
        ),
        (
            "attributes with values",
            attributes.is_none_or(|attributes| {
                attributes
                    .values()
                    .all(|value| !is_empty(&value["StringValue"]))
            }),
        ),
        (
            "a group on a FIFO queue",
            !fifo || body["MessageGroupId"].is_string(),
        ),
        (
            "a deduplication id on a FIFO queue alone",
            fifo == body["MessageDeduplicationId"].is_string(),
        ),
    ];
    let broken = rules.into_iter().find(|(_, kept)| !kept);
    broken.map(|(rule, _)| rule)
}
