//! A stand-in for SES v2. It knows what it accepted for each key, which no worker ever surely does.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::chronicle::Chronicle;
use crate::fate::{self, Fate, Kill, Reply};
use crate::notifications::Notifications;
use crate::plan::{Kind, Plan};
use crate::sky::Sky;
use crate::support::http::{self, Connection, Request};
use crate::support::mail::SendEmail;
use crate::tally::Tally;
use crate::victims::Victims;

const JSON: (&str, &str) = ("content-type", "application/json");
/// Requests for one key that can meet with a fault; the next one is accepted.
const MOST_FAULTS: u32 = 4;
/// Of a hundred requests, so many meet with one.
const FAULTS_PERCENT: u32 = 22;

pub struct Ses {
    port: u16,
    pub tally: Arc<Tally>,
}

struct Shared {
    plan: Arc<Plan>,
    sky: Arc<Sky>,
    chronicle: Arc<Chronicle>,
    victims: Arc<Victims>,
    /// `None`: nobody listens to what SES says.
    notifications: Option<Notifications>,
    tally: Arc<Tally>,
    requests: Tally,
}

impl Ses {
    pub async fn start(
        plan: Arc<Plan>,
        sky: Arc<Sky>,
        chronicle: Arc<Chronicle>,
        victims: Arc<Victims>,
        notifications: Option<Notifications>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let tally = Arc::new(Tally::default());
        let shared = Arc::new(Shared {
            plan,
            sky,
            chronicle,
            victims,
            notifications,
            tally: tally.clone(),
            requests: Tally::default(),
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { port, tally }
    }

    /// Where this worker finds SES: its name is in the path, so that SES knows whom it answers.
    pub fn url_of(&self, worker: &str) -> String {
        format!("http://127.0.0.1:{}/{worker}", self.port)
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut connection = Connection::new(stream);
    while let Ok(Some(request)) = connection.next_request().await {
        if !matches!(shared.handle(&mut connection, &request).await, Ok(true)) {
            return;
        }
    }
}

impl Shared {
    /// Gives whether the connection stays open.
    async fn handle(&self, connection: &mut Connection, request: &Request) -> io::Result<bool> {
        let worker = request.path.split('/').nth(1).unwrap_or_default();
        let body: Value = serde_json::from_slice(&request.body).map_err(io::Error::other)?;
        let key = SendEmail::event_id_in(&body);
        let fate = self.fate_of(&key);
        self.tally.count(name(&fate));
        if !fate.accepted {
            if fate.kill.is_some() {
                self.victims.kill(worker);
                return Ok(false);
            }
            return self.reply(connection, fate.reply, "").await;
        }
        let id = self.chronicle.email_leaves(&key, worker);
        self.notify(&id, body);
        if fate.kill == Some(Kill::InsteadOfTheReply) {
            self.chronicle.reply_is_lost(&id);
            self.victims.kill(worker);
            return Ok(false);
        }
        if !matches!(fate.reply, Reply::MessageId(_)) {
            self.chronicle.reply_is_lost(&id);
        }
        let replied = self.reply(connection, fate.reply, &id).await;
        if replied.is_err() {
            // The worker was gone.
            self.chronicle.reply_is_lost(&id);
        }
        if fate.kill == Some(Kill::RightAfterIt) {
            tokio::time::sleep(Duration::from_micros(fastrand::u64(0..4000))).await;
            self.victims.kill(worker);
        }
        replied
    }

    fn fate_of(&self, key: &str) -> Fate {
        let time = self.requests.count(key);
        let mut rng = self.plan.dice.roll("ses", key, time);
        if self.plan.event(key).map(|event| event.kind) == Some(Kind::RefusedBySes) {
            Fate::refused(fate::REFUSED)
        } else if self.sky.ses_is_throttling() {
            Fate::refused(fate::THROTTLED)
        } else if self.sky.ses_is_down() {
            Fate::refused(fate::UNAVAILABLE)
        } else if self.sky.is_storming() && time < MOST_FAULTS && rng.u32(..100) < FAULTS_PERCENT {
            Fate::in_a_storm(&mut rng)
        } else {
            Fate::accepted(&mut rng)
        }
    }

    fn notify(&self, id: &str, body: Value) {
        if let Some(notifications) = &self.notifications {
            notifications.tell_of(&SendEmail {
                body,
                accepted: true,
                at: Instant::now(),
                message_id: id.to_owned(),
            });
        }
    }

    async fn reply(&self, connection: &mut Connection, reply: Reply, id: &str) -> io::Result<bool> {
        let success = json!({ "MessageId": id }).to_string();
        match reply {
            Reply::MessageId(after) => {
                tokio::time::sleep(after).await;
                connection.reply(200, &[JSON], success.as_bytes()).await?;
            }
            Reply::Error(status, code, message) => {
                let body = json!({ "message": message }).to_string();
                let headers = [JSON, ("x-amzn-errortype", code)];
                connection.reply(status, &headers, body.as_bytes()).await?;
            }
            Reply::NoMessageId => connection.reply(200, &[JSON], b"{}").await?,
            Reply::Close => return Ok(false),
            Reply::CutShort => {
                let bytes = http::reply(200, &[JSON], success.as_bytes());
                connection.write(&bytes[..bytes.len() - 20]).await?;
                return Ok(false);
            }
            Reply::Silence => {
                // Until the worker gives up.
                let _ = connection.next_request().await;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// For the count of what SES did.
fn name(fate: &Fate) -> &'static str {
    match (fate.accepted, fate.reply, fate.kill) {
        (_, _, Some(_)) => "worker killed meanwhile",
        (true, Reply::MessageId(_), None) => "accepted",
        (true, ..) => "accepted, reply lost",
        (false, Reply::Error(429, ..), _) => "throttled",
        (false, Reply::Error(500.., ..), _) => "5xx",
        (false, Reply::Error(..), _) => "4xx",
        (false, ..) => "not accepted, no reply",
    }
}
