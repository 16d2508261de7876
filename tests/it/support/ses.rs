//! A stand-in for SES v2 that takes `SendEmail` requests, keeps each as it came, and answers as the test says.

mod rules;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::gate::Gate;
use super::http::{self, Connection, Request};
use super::lambda::Sandbox;
use super::mail::SendEmail;
use super::patience::within_reason;

const JSON: (&str, &str) = ("content-type", "application/json");

/// How one request is answered. An accepted email has left, whatever becomes of the reply.
#[derive(Clone, Debug)]
pub struct Reply {
    accepted: bool,
    gate: Option<Gate>,
    delay: Duration,
    wire: Wire,
    then_close: bool,
}

/// What is written on the connection.
#[derive(Clone, Debug)]
enum Wire {
    MessageId,
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    HalfOfTheAnswer,
    Nothing,
}

impl Reply {
    /// The email is accepted, and the reply has its message id.
    pub fn accept() -> Self {
        Self {
            accepted: true,
            gate: None,
            delay: Duration::ZERO,
            wire: Wire::MessageId,
            then_close: false,
        }
    }

    /// An error as SES makes it, its type in the header.
    pub fn refuse(status: u16, error_type: &str, message: &str) -> Self {
        let body = json!({ "message": message }).to_string();
        Self::answer(status, body)
            .with_header("x-amzn-errortype", error_type)
            .not_accepted()
    }

    /// An error whose type is in the body, as other servers of the same protocol make it.
    pub fn refuse_in_body(status: u16, error_type: &str, message: &str) -> Self {
        Self::answer(
            status,
            json!({ "__type": error_type, "message": message }).to_string(),
        )
        .not_accepted()
    }

    /// The email is accepted, and the reply says something else than its message id.
    pub fn accept_and_answer(status: u16, body: &str) -> Self {
        Self::answer(status, body.to_owned())
    }

    /// The email is accepted, and the connection closed without a reply.
    pub fn accept_without_reply() -> Self {
        Self {
            wire: Wire::Nothing,
            then_close: true,
            ..Self::accept()
        }
    }

    /// The email is accepted, and the connection closed in the middle of the reply.
    pub fn accept_with_half_a_reply() -> Self {
        Self {
            wire: Wire::HalfOfTheAnswer,
            then_close: true,
            ..Self::accept()
        }
    }

    /// The request is read, and nothing follows: no reply, no close, no email.
    pub fn silence() -> Self {
        Self {
            wire: Wire::Nothing,
            ..Self::accept()
        }
        .not_accepted()
    }

    fn answer(status: u16, body: String) -> Self {
        Self {
            wire: Wire::Answer {
                status,
                headers: Vec::new(),
                body,
            },
            ..Self::accept()
        }
    }

    pub fn not_accepted(mut self) -> Self {
        self.accepted = false;
        self
    }

    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        if let Wire::Answer { headers, .. } = &mut self.wire {
            headers.push((name, value.to_owned()));
        }
        self
    }

    /// The reply waits until the gate opens. The request has arrived by then, and counts.
    pub fn after(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    pub fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The server closes after the reply without having said so in it, as it may with any idle connection.
    pub fn then_close(mut self) -> Self {
        self.then_close = true;
        self
    }
}

pub struct Ses {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Script>,
    received: watch::Sender<Received>,
    /// Connections that would still read a request.
    listening: watch::Sender<usize>,
    fate_of_idle: watch::Sender<Fate>,
}

/// Which request is answered how: by its event first, then by its turn, then as always.
struct Script {
    by_event: HashMap<String, VecDeque<Reply>>,
    next: VecDeque<Reply>,
    always: Reply,
}

#[derive(Default)]
struct Received {
    requests: Vec<SendEmail>,
    in_flight: usize,
    most_in_flight: usize,
}

/// What becomes of the connections that are idle when the test says so.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Close,
    /// They stay open and nobody reads: the other end is gone without a word, as behind a NAT that forgot them.
    GoDeaf,
}

impl Ses {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener
            .local_addr()
            .expect("a bound socket has an address")
            .port();
        let shared = Arc::new(Shared {
            script: Mutex::new(Script {
                by_event: HashMap::new(),
                next: VecDeque::new(),
                always: Reply::accept(),
            }),
            received: watch::Sender::new(Received::default()),
            listening: watch::Sender::new(0),
            fate_of_idle: watch::Sender::new(Fate::Close),
        });
        tokio::spawn(accept(listener, shared.clone()));
        Self { port, shared }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Answers the next request that no other rule answers; said again, the one after it.
    pub fn reply_next(&self, reply: Reply) {
        self.script().next.push_back(reply);
    }

    /// Answers the next request for this event; said again, the one after it.
    pub fn reply_to_event(&self, event_id: &str, reply: Reply) {
        self.script()
            .by_event
            .entry(event_id.to_owned())
            .or_default()
            .push_back(reply);
    }

    /// Answers whatever nothing else answers.
    pub fn reply_always(&self, reply: Reply) {
        self.script().always = reply;
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.shared.script.lock().expect("no test panics here")
    }

    /// Waits until so many requests have arrived, and gives them all.
    pub async fn received(&self, count: usize) -> Vec<SendEmail> {
        let mut received = self.shared.received.subscribe();
        let arrived = received.wait_for(|received| received.requests.len() >= count);
        let what = format!("request {count} at SES");
        within_reason(&what, arrived)
            .await
            .expect("the sender is in `shared`")
            .requests
            .clone()
    }

    /// Opens the gate for which the replies wait, and has all of them arrive at one moment, however slow this machine
    /// is: the worker stands still meanwhile.
    pub async fn reply_at_once(&self, gate: &Gate, worker: &Sandbox) {
        worker.freeze();
        gate.open();
        let mut received = self.shared.received.subscribe();
        let replied = received.wait_for(|received| received.in_flight == 0);
        within_reason("the replies of SES", replied)
            .await
            .expect("the sender is in `shared`");
        worker.thaw();
    }

    /// Every request so far, also those that were refused.
    pub fn requests(&self) -> Vec<SendEmail> {
        self.shared.received.borrow().requests.clone()
    }

    /// The emails that have left.
    pub fn emails(&self) -> Vec<SendEmail> {
        self.requests()
            .into_iter()
            .filter(|request| request.accepted)
            .collect()
    }

    /// The one email that has left.
    #[track_caller]
    pub fn only_email(&self) -> SendEmail {
        let mut emails = self.emails();
        assert_eq!(emails.len(), 1, "emails that have left");
        emails.remove(0)
    }

    #[track_caller]
    pub fn assert_emails(&self, count: usize) {
        assert_eq!(self.emails().len(), count, "emails that have left");
    }

    #[track_caller]
    pub fn assert_requests(&self, count: usize) {
        assert_eq!(self.requests().len(), count, "requests that SES got");
    }

    /// The most requests that waited for their replies at one moment.
    pub fn most_in_flight(&self) -> usize {
        self.shared.received.borrow().most_in_flight
    }

    /// Closes all connections, which must be idle, and waits until each is closed.
    pub async fn close_idle_connections(&self) {
        self.doom_idle(Fate::Close).await;
    }

    /// Leaves all connections, which must be idle, open and unread.
    pub async fn go_deaf_on_idle_connections(&self) {
        self.doom_idle(Fate::GoDeaf).await;
    }

    async fn doom_idle(&self, fate: Fate) {
        self.shared.fate_of_idle.send_replace(fate);
        let mut listening = self.shared.listening.subscribe();
        let none = listening.wait_for(|count| *count == 0);
        within_reason("the idle connections to end", none)
            .await
            .expect("the sender is in `shared`");
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        shared.listening.send_modify(|count| *count += 1);
        // Subscribed before it is served: only what the test says from now on is about this connection.
        tokio::spawn(serve(
            stream,
            shared.fate_of_idle.subscribe(),
            shared.clone(),
        ));
    }
}

async fn serve(stream: TcpStream, mut fate: watch::Receiver<Fate>, shared: Arc<Shared>) {
    let mut connection = Connection::new(stream);
    let deaf = loop {
        let request = tokio::select! {
            request = connection.next_request() => request,
            _ = fate.changed() => break matches!(*fate.borrow(), Fate::GoDeaf),
        };
        let Ok(Some(request)) = request else {
            break false;
        };
        if !matches!(
            answer(&mut connection, &request, &shared).await,
            Ok(Next::Request)
        ) {
            break false;
        }
    };
    if deaf {
        shared.listening.send_modify(|count| *count -= 1);
        std::future::pending::<()>().await;
    }
    drop(connection);
    shared.listening.send_modify(|count| *count -= 1);
}

enum Next {
    Request,
    Close,
}

async fn answer(
    connection: &mut Connection,
    request: &Request,
    shared: &Shared,
) -> io::Result<Next> {
    if (request.method.as_str(), request.path.as_str()) != ("POST", "/v2/email/outbound-emails") {
        connection
            .reply(
                404,
                &[JSON, ("x-amzn-errortype", "UnknownOperationException")],
                b"{}",
            )
            .await?;
        return Ok(Next::Request);
    }

    let body: Value = serde_json::from_slice(&request.body).map_err(io::Error::other)?;
    let reply = match rules::complaint(&body) {
        Some(complaint) => Reply::refuse(400, "BadRequestException", &complaint),
        None => shared
            .script
            .lock()
            .expect("no test panics here")
            .reply_to(&SendEmail::event_id_in(&body)),
    };
    let message_id = record(&shared.received, body, reply.accepted);
    // The count goes down however this ends, also when the client goes away.
    let _in_flight = InFlight(&shared.received);

    if let Some(gate) = &reply.gate {
        gate.pass().await;
    }
    tokio::time::sleep(reply.delay).await;
    let success = http::reply(
        200,
        &[JSON],
        json!({ "MessageId": message_id }).to_string().as_bytes(),
    );
    match &reply.wire {
        Wire::MessageId => connection.write(&success).await?,
        Wire::HalfOfTheAnswer => connection.write(&success[..success.len() - 20]).await?,
        Wire::Answer {
            status,
            headers,
            body,
        } => {
            let headers = headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .chain([JSON]);
            connection
                .reply(*status, &headers.collect::<Vec<_>>(), body.as_bytes())
                .await?;
        }
        Wire::Nothing if reply.then_close => {}
        Wire::Nothing => std::future::pending().await,
    }
    Ok(if reply.then_close {
        Next::Close
    } else {
        Next::Request
    })
}

impl Script {
    fn reply_to(&mut self, event_id: &str) -> Reply {
        let by_event = self
            .by_event
            .get_mut(event_id)
            .and_then(VecDeque::pop_front);
        by_event
            .or_else(|| self.next.pop_front())
            .unwrap_or_else(|| self.always.clone())
    }
}

/// Keeps the request, and gives the message id under which SES knows it.
fn record(received: &watch::Sender<Received>, body: Value, accepted: bool) -> String {
    let mut message_id = String::new();
    received.send_modify(|received| {
        message_id = format!(
            "0102018c7f3a5b2c-{:08x}-000000",
            received.requests.len() + 1
        );
        received.requests.push(SendEmail {
            body,
            accepted,
            at: Instant::now(),
            message_id: message_id.clone(),
        });
        received.in_flight += 1;
        received.most_in_flight = received.most_in_flight.max(received.in_flight);
    });
    message_id
}

struct InFlight<'a>(&'a watch::Sender<Received>);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|received| received.in_flight -= 1);
    }
}
