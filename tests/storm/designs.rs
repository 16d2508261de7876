//! The usual designs, in the same storm as the function: the same events, the same fates, the same Postgres, and an SES
//! and a queue by the same rules. Each is as small as its idea and as careful as its idea allows.

mod attempt;
mod request;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::chronicle::Chronicle;
use crate::jobboard;
use crate::onemail::RULES;
use crate::plan::{Kind, Plan};
use crate::postgres::Postgres;
use crate::proxy::Proxy;
use crate::queue::{Delivery, Queue};
use crate::ses::Ses;
use crate::sky::Sky;
use crate::victims::{Victim, Victims};

use attempt::{Attempt, Locks, connect};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Design {
    ClaimFirst,
    SendFirst,
    CheckThenMark,
    ExpiringLock,
    OneTransaction,
}

impl Design {
    pub const ALL: [Self; 5] = [
        Self::ClaimFirst,
        Self::SendFirst,
        Self::CheckThenMark,
        Self::ExpiringLock,
        Self::OneTransaction,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ClaimFirst => "claim first, never release",
            Self::SendFirst => "send, then claim",
            Self::CheckThenMark => "check, send, then mark",
            Self::ExpiringLock => "a lock outside the database that expires; check, send, mark",
            Self::OneTransaction => "claim and send in one transaction, without the notification",
        }
    }

    fn database(self) -> String {
        format!("design_{}", self as usize)
    }
}

/// A worker doesn't take longer over a message.
const TIMEOUT: Duration = Duration::from_secs(6);
/// As long as the function's own first delay.
const COMES_BACK: Duration = Duration::from_secs(25);
const WORKERS: usize = 6;

/// A design in the storm.
pub struct Trial {
    pub design: Design,
    plan: Arc<Plan>,
    chronicle: Arc<Chronicle>,
    pub victims: Arc<Victims>,
    queue: Arc<Queue>,
    places: JoinSet<()>,
}

struct Desk {
    design: Design,
    queue: Arc<Queue>,
    victims: Arc<Victims>,
    proxy_port: u16,
    ses: Ses,
    locks: Locks,
}

impl Trial {
    pub async fn start(
        design: Design,
        plan: &Arc<Plan>,
        sky: &Arc<Sky>,
        postgres: &Postgres,
    ) -> Self {
        let administrator = jobboard::connect(postgres, "postgres").await;
        let database = design.database();
        jobboard::execute(&administrator, &format!("CREATE DATABASE {database}")).await;
        let client = jobboard::connect(postgres, &database).await;
        let table = "CREATE TABLE processed_events (event_id text PRIMARY KEY)";
        jobboard::execute(&client, table).await;

        let chronicle = Arc::new(Chronicle::default());
        let victims = Arc::new(Victims::new(chronicle.clone()));
        let queue = Arc::new(Queue::new(
            "events",
            RULES,
            plan.dice.roll("queue", "events", 0),
        ));
        let proxy = Proxy::start(
            postgres.port(),
            plan.dice,
            sky.clone(),
            chronicle.clone(),
            victims.clone(),
        )
        .await;
        let ses = Ses::start(
            plan.clone(),
            sky.clone(),
            chronicle.clone(),
            victims.clone(),
            None,
        )
        .await;
        let desk = Arc::new(Desk {
            design,
            queue: queue.clone(),
            victims: victims.clone(),
            proxy_port: proxy.port(),
            ses,
            locks: Locks::default(),
        });
        let mut places = JoinSet::new();
        for place in 0..WORKERS {
            places.spawn(staff(desk.clone(), place));
        }
        Self {
            design,
            plan: plan.clone(),
            chronicle,
            victims,
            queue,
            places,
        }
    }

    /// The events that can be sent: the others are not what these designs differ in.
    pub fn begin(&self, start: Instant) {
        for message in &self.plan.messages {
            if self.plan.events[message.event].kind == Kind::Sendable {
                for at in std::iter::once(message.at).chain(message.again_at) {
                    self.queue.send_at(&message.id, &message.body, start + at);
                }
            }
        }
    }

    pub async fn done(&mut self) {
        tokio::select! {
            () = self.queue.emptied() => {}
            Some(Err(fault)) = self.places.join_next() => panic!("{:?} broke down: {fault}", self.design),
        }
    }

    pub fn lost(&self) -> usize {
        let emails = self.chronicle.emails();
        let events = self.plan.events.iter();
        events
            .filter(|event| event.kind == Kind::Sendable && !emails.contains_key(&event.key))
            .count()
    }

    pub fn second_emails(&self) -> usize {
        let emails = self.chronicle.emails();
        emails.values().map(|ids| ids.len() - 1).sum()
    }
}

/// One worker after another.
async fn staff(desk: Arc<Desk>, place: usize) {
    for generation in 1.. {
        let name = format!("n{place}-{generation}");
        // It ends with this task.
        let mut worker = JoinSet::new();
        let task = worker.spawn(work(desk.clone(), name.clone()));
        desk.victims.add(&name, Victim::Task(task));
        if let Some(Err(error)) = worker.join_next().await {
            assert!(!error.is_panic(), "{:?}: {error}", desk.design);
        }
        desk.victims.remove(&name);
    }
}

async fn work(desk: Arc<Desk>, name: String) {
    let mut session = None;
    loop {
        for delivery in desk.queue.receive(1).await {
            let handled = tokio::time::timeout(TIMEOUT, handle(&desk, &name, &delivery, session));
            session = match handled.await {
                Ok(Some(client)) => {
                    desk.queue.delete(&delivery);
                    Some(client)
                }
                _ => {
                    desk.queue.change_visibility(delivery.receipt(), COMES_BACK);
                    None
                }
            };
        }
    }
}

/// Gives its session back if the message is done.
async fn handle(
    desk: &Desk,
    name: &str,
    delivery: &Delivery,
    session: Option<tokio_postgres::Client>,
) -> Option<tokio_postgres::Client> {
    let client = match session.filter(|session| !session.is_closed()) {
        Some(client) => client,
        None => connect(desk.proxy_port, &desk.design.database(), name)
            .await
            .ok()?,
    };
    let attempt = Attempt {
        client: &client,
        ses_url: &desk.ses.url_of(name),
        locks: &desk.locks,
        key: &key_of(&delivery.body),
    };
    attempt.make(desk.design).await.ok()?;
    Some(client)
}

fn key_of(body: &str) -> String {
    let mut event: Value = serde_json::from_str(body).expect("these events are JSON");
    if let Some(message) = event["Message"].as_str() {
        event = serde_json::from_str(message).expect("as above");
    } else if event["detail"].is_object() {
        event = event["detail"].take();
    }
    match (event["event_id"].as_str(), event["order_id"].as_i64()) {
        (Some(key), _) => key.to_owned(),
        (None, order) => format!("order-{}", order.expect("one or the other")),
    }
}
