//! A stand-in for Secrets Manager that keeps one secret, and counts how often it is read.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::gate::Gate;
use super::http::{Connection, Request};
use super::patience::within_reason;

const JSON: (&str, &str) = ("content-type", "application/x-amz-json-1.1");
/// Of the one secret; as RDS names its own.
pub const ARN: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds!db-0f1e2d3c-AbCdEf";

pub struct SecretsManager {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    requests: watch::Sender<usize>,
}

struct State {
    /// The text of the secret; `None`: it is binary.
    secret: Option<String>,
    mood: Mood,
}

/// How requests are answered.
#[derive(Clone, Debug)]
pub enum Mood {
    Obliging,
    /// Not before the gate opens.
    Slow(Gate),
    /// With this status and code.
    Refusing(u16, &'static str),
    /// The request is read, and nothing follows.
    Silent,
    /// The connection is closed instead of an answer.
    Closing,
}

impl SecretsManager {
    pub async fn start(secret: &Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr();
        let port = address.expect("a bound socket has an address").port();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                secret: Some(secret.to_string()),
                mood: Mood::Obliging,
            }),
            requests: watch::Sender::new(0),
        });
        tokio::spawn(accept(listener, shared.clone()));
        Self { port, shared }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// As a rotation does: from now on the secret has this value.
    pub fn put(&self, secret: &Value) {
        self.put_text(&secret.to_string());
    }

    pub fn put_text(&self, secret: &str) {
        self.state().secret = Some(secret.to_owned());
    }

    pub fn put_binary(&self) {
        self.state().secret = None;
    }

    pub fn turn(&self, mood: Mood) {
        self.state().mood = mood;
    }

    /// How often the secret was asked for.
    pub fn requests(&self) -> usize {
        *self.shared.requests.borrow()
    }

    /// Waits until it was asked for so often.
    pub async fn asked(&self, times: usize) {
        let mut requests = self.shared.requests.subscribe();
        let asked = requests.wait_for(|requests| *requests >= times);
        within_reason("a request for the secret", asked)
            .await
            .expect("the sender is in `shared`");
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().expect("no test panics here")
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
    let mood = shared
        .state
        .lock()
        .expect("no test panics here")
        .mood
        .clone();
    shared.requests.send_modify(|requests| *requests += 1);
    match mood {
        Mood::Obliging => {}
        Mood::Slow(gate) => gate.pass().await,
        Mood::Refusing(status, code) => return refuse(connection, status, code).await,
        Mood::Silent => return std::future::pending().await,
        Mood::Closing => return Err(io::ErrorKind::ConnectionAborted.into()),
    }
    let body: Value = serde_json::from_slice(&request.body).map_err(io::Error::other)?;
    if request.header("x-amz-target") != Some("secretsmanager.GetSecretValue") {
        return refuse(connection, 400, "UnknownOperationException").await;
    }
    if body["SecretId"] != ARN {
        return refuse(connection, 400, "ResourceNotFoundException").await;
    }
    let mut answer = json!({
        "ARN": ARN,
        "Name": "rds!db-0f1e2d3c",
        "VersionId": "5048a5c5-7b1d-4d4a-9f4e-6f0a1c2b3d4e",
        "VersionStages": ["AWSCURRENT"],
        "CreatedDate": 1767268800.123,
    });
    let secret = shared
        .state
        .lock()
        .expect("no test panics here")
        .secret
        .clone();
    match secret {
        Some(text) => answer["SecretString"] = text.into(),
        None => answer["SecretBinary"] = "aHVudGVyMg==".into(),
    }
    connection
        .reply(200, &[JSON], answer.to_string().as_bytes())
        .await
}

async fn refuse(connection: &mut Connection, status: u16, code: &str) -> io::Result<()> {
    let message = "User: arn:aws:sts::123456789012:assumed-role/onemail/onemail is not authorized";
    let error = json!({ "__type": code, "message": message });
    connection
        .reply(status, &[JSON], error.to_string().as_bytes())
        .await
}
