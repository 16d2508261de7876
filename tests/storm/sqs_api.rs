//! SQS's API as the function uses it, before the queues of `queue.rs`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::queue::{DeadLetter, Queue, Receipt};
use crate::sky::Sky;
use crate::support::http::{Connection, Request};

const JSON: (&str, &str) = ("content-type", "application/x-amz-json-1.0");
/// Of requests that SQS fails to answer in a storm, for the SDK to repeat.
const FAILURES_PERCENT: u32 = 5;

pub struct SqsApi {
    port: u16,
}

struct Shared {
    port: u16,
    sky: Arc<Sky>,
    events: Arc<Queue>,
    notifications: Arc<Queue>,
}

impl SqsApi {
    pub async fn start(sky: Arc<Sky>, events: Arc<Queue>, notifications: Arc<Queue>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            port,
            sky,
            events,
            notifications,
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn dead_letter_queue_url(&self) -> String {
        format!("{}/123456789012/dead-letters", self.url())
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut connection = Connection::new(stream);
    while let Ok(Some(request)) = connection.next_request().await {
        let (status, answer) =
            if shared.sky.is_storming() && fastrand::u32(..100) < FAILURES_PERCENT {
                (500, json!({ "__type": "com.amazonaws.sqs#InternalError" }))
            } else {
                match shared.answer(&request) {
                    Ok(answer) => (200, answer),
                    Err(_) => (400, json!({ "__type": "com.amazonaws.sqs#InvalidAddress" })),
                }
            };
        let body = answer.to_string();
        let replied = connection.reply(status, &[JSON], body.as_bytes()).await;
        if replied.is_err() {
            return;
        }
    }
}

impl Shared {
    fn answer(&self, request: &Request) -> io::Result<Value> {
        let body: Value = serde_json::from_slice(&request.body).map_err(io::Error::other)?;
        let target = request.header("x-amz-target").unwrap_or_default();
        match target.trim_start_matches("AmazonSQS.") {
            "GetQueueUrl" => {
                let name = body["QueueName"].as_str().unwrap_or_default();
                let url = format!("http://127.0.0.1:{}/123456789012/{name}", self.port);
                Ok(json!({ "QueueUrl": url }))
            }
            "ChangeMessageVisibilityBatch" => {
                let queue = self.queue(&body)?;
                let entries = body["Entries"].as_array().into_iter().flatten();
                let (done, failed): (Vec<_>, Vec<_>) =
                    entries.partition(|entry| change_visibility(queue, entry));
                let done: Vec<_> = done
                    .iter()
                    .map(|entry| json!({ "Id": entry["Id"] }))
                    .collect();
                let failed: Vec<_> = failed
                    .iter()
                    .map(|entry| {
                        json!({ "Id": entry["Id"], "SenderFault": true, "Code": "MessageNotInflight" })
                    })
                    .collect();
                Ok(json!({ "Successful": done, "Failed": failed }))
            }
            "SendMessage" if queue_name(&body) == "dead-letters" => {
                let attribute = |name: &str| {
                    let value = body["MessageAttributes"][name]["StringValue"].as_str();
                    value.map(str::to_owned)
                };
                self.events.give_up(DeadLetter {
                    message_id: attribute("onemail_message_id").unwrap_or_default(),
                    reason: attribute("onemail_reason"),
                });
                Ok(
                    json!({ "MessageId": "0b0c2f3e-6c4d-4a77-9d5e-0f3a8b1c2d4e", "MD5OfMessageBody": "" }),
                )
            }
            other => Err(io::Error::other(format!("no such action: {other}"))),
        }
    }

    fn queue(&self, body: &Value) -> io::Result<&Queue> {
        let name = queue_name(body);
        [&*self.events, &*self.notifications]
            .into_iter()
            .find(|queue| queue.name == name)
            .ok_or_else(|| io::Error::other(format!("no such queue: {name}")))
    }
}

fn queue_name(body: &Value) -> &str {
    let url = body["QueueUrl"].as_str().unwrap_or_default();
    url.rsplit('/').next().unwrap_or_default()
}

fn change_visibility(queue: &Queue, entry: &Value) -> bool {
    let receipt = entry["ReceiptHandle"].as_str().and_then(Receipt::parse);
    let seconds = entry["VisibilityTimeout"].as_u64();
    match (receipt, seconds) {
        (Some(receipt), Some(seconds)) => {
            queue.change_visibility(receipt, Duration::from_secs(seconds))
        }
        _ => false,
    }
}
