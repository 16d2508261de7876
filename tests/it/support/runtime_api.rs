//! A stand-in for Lambda's Runtime API, over which a function's process asks for work and answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use super::http::{Connection, Request};

const JSON: (&str, &str) = ("content-type", "application/json");

/// An invocation as the function ended it: with an answer, or with an error that it reported itself.
pub type Ending = Result<Value, ReportedError>;

#[derive(Clone, Debug)]
pub struct ReportedError {
    pub error_type: String,
    pub message: String,
}

pub struct RuntimeApi {
    address: String,
    work: mpsc::UnboundedSender<Invocation>,
    shared: Arc<Shared>,
}

struct Shared {
    waiting: Mutex<mpsc::UnboundedReceiver<Invocation>>,
    started: std::sync::Mutex<HashMap<String, oneshot::Sender<Ending>>>,
    times_asked: watch::Sender<usize>,
    init_error: watch::Sender<Option<ReportedError>>,
}

struct Invocation {
    event: Value,
    deadline: SystemTime,
    ending: oneshot::Sender<Ending>,
}

impl RuntimeApi {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address")
            .to_string();
        let (work, waiting) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            waiting: Mutex::new(waiting),
            started: std::sync::Mutex::default(),
            times_asked: watch::Sender::new(0),
            init_error: watch::Sender::new(None),
        });
        tokio::spawn(accept(listener, shared.clone()));
        Self {
            address,
            work,
            shared,
        }
    }

    /// `host:port`, as Lambda gives it in `AWS_LAMBDA_RUNTIME_API`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Hands the event to the function as soon as it asks for work.
    pub fn invoke(&self, event: Value, time: Duration) -> oneshot::Receiver<Ending> {
        let (ending, ended) = oneshot::channel();
        let deadline = SystemTime::now() + time;
        self.work
            .send(Invocation {
                event,
                deadline,
                ending,
            })
            .expect("the receiver is in `shared`");
        ended
    }

    /// Waits until the function has asked for work so many times: once, and it has started; once more, and the
    /// invocation before is over.
    pub async fn asked(&self, times: usize) {
        let mut asked = self.shared.times_asked.subscribe();
        asked
            .wait_for(|asked| *asked >= times)
            .await
            .expect("the sender is in `shared`");
    }

    pub fn init_error(&self) -> Option<ReportedError> {
        self.shared.init_error.borrow().clone()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, shared.clone()));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut connection = Connection::new(stream);
    // An error here is a process that was killed; whoever waits for it learns so from the process itself.
    while let Ok(Some(request)) = connection.next_request().await {
        let route: Vec<&str> = request.path.split('/').skip(2).collect();
        let served = match (request.method.as_str(), route.as_slice()) {
            ("GET", ["runtime", "invocation", "next"]) => next(&mut connection, &shared).await,
            ("POST", ["runtime", "invocation", id, "response"]) => {
                end(
                    &shared,
                    id,
                    serde_json::from_slice(&request.body).map_err(|_| not_json(&request)),
                );
                accepted(&mut connection).await
            }
            ("POST", ["runtime", "invocation", id, "error"]) => {
                end(&shared, id, Err(reported(&request)));
                accepted(&mut connection).await
            }
            ("POST", ["runtime", "init", "error"]) => {
                shared.init_error.send_replace(Some(reported(&request)));
                accepted(&mut connection).await
            }
            _ => connection.reply(404, &[JSON], b"{}").await,
        };
        if served.is_err() {
            return;
        }
    }
}

async fn next(connection: &mut Connection, shared: &Shared) -> std::io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(1);

    shared.times_asked.send_modify(|times| *times += 1);
    let Some(invocation) = shared.waiting.lock().await.recv().await else {
        return Ok(());
    };
    let id = format!(
        "8476a536-e9f4-11e8-9739-{:012}",
        NUMBER.fetch_add(1, Ordering::Relaxed)
    );
    let deadline = invocation
        .deadline
        .duration_since(UNIX_EPOCH)
        .expect("it is later than 1970")
        .as_millis();
    shared
        .started
        .lock()
        .expect("no test panics here")
        .insert(id.clone(), invocation.ending);
    let headers = [
        JSON,
        ("lambda-runtime-aws-request-id", &id),
        ("lambda-runtime-deadline-ms", &deadline.to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:eu-west-1:123456789012:function:onemail",
        ),
        (
            "lambda-runtime-trace-id",
            "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0",
        ),
    ];
    connection
        .reply(200, &headers, invocation.event.to_string().as_bytes())
        .await
}

fn end(shared: &Shared, id: &str, ending: Ending) {
    let ended = shared
        .started
        .lock()
        .expect("no test panics here")
        .remove(id);
    // Nobody may be waiting: a test that let the deadline pass has gone on.
    let _ = ended.map(|ended| ended.send(ending));
}

async fn accepted(connection: &mut Connection) -> std::io::Result<()> {
    connection.reply(202, &[JSON], br#"{"status":"OK"}"#).await
}

fn reported(request: &Request) -> ReportedError {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_else(|_| json!({}));
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    ReportedError {
        error_type: field("errorType"),
        message: field("errorMessage"),
    }
}

fn not_json(request: &Request) -> ReportedError {
    ReportedError {
        error_type: "NotJson".to_owned(),
        message: format!("not JSON: {}", String::from_utf8_lossy(&request.body)),
    }
}
