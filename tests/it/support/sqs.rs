//! A stand-in for SQS that keeps what it is told about messages: when they come back, and which are moved.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::http::{Connection, Request};

const JSON: (&str, &str) = ("content-type", "application/x-amz-json-1.0");
const ACCOUNT: &str = "123456789012";

pub struct Sqs {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    port: u16,
    refusing: AtomicBool,
    calls: watch::Sender<Vec<Call>>,
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
            refusing: AtomicBool::new(false),
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
        self.shared.refusing.store(true, Ordering::Relaxed);
    }

    /// In how many seconds the message with this receipt handle was said to come back, each time it was said.
    pub fn delays_of(&self, receipt_handle: &str) -> Vec<u64> {
        let entries = self.calls("ChangeMessageVisibilityBatch").into_iter();
        let entries =
            entries.flat_map(|body| body["Entries"].as_array().cloned().unwrap_or_default());
        entries
            .filter(|entry| entry["ReceiptHandle"] == receipt_handle)
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
    if shared.refusing.load(Ordering::Relaxed) {
        let error =
            json!({ "__type": "com.amazonaws.sqs#AccessDeniedException", "message": "Denied." });
        return connection
            .reply(403, &[JSON], error.to_string().as_bytes())
            .await;
    }
    let answer = match action.as_str() {
        "GetQueueUrl" => {
            let name = body["QueueName"].as_str().unwrap_or_default();
            json!({ "QueueUrl": format!("http://127.0.0.1:{}/{ACCOUNT}/{name}", shared.port) })
        }
        "ChangeMessageVisibilityBatch" => {
            let entries = body["Entries"].as_array().into_iter().flatten();
            let done: Vec<Value> = entries.map(|entry| json!({ "Id": entry["Id"] })).collect();
            json!({ "Successful": done, "Failed": [] })
        }
        _ => json!({ "MessageId": "0b0c2f3e-6c4d-4a77-9d5e-0f3a8b1c2d4e", "MD5OfMessageBody": "" }),
    };
    shared
        .calls
        .send_modify(|calls| calls.push(Call { action, body }));
    connection
        .reply(200, &[JSON], answer.to_string().as_bytes())
        .await
}
