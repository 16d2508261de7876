//! One event on its way: its queue, its worker, Postgres, SES, and the word that SES sends back.
//!
//! Time passes only when nothing else is left to happen: it goes on to the moment at which the next message becomes
//! visible on either queue. An invocation takes none. What Postgres does by its own clock goes along: what is in
//! doubt, the end of a lease, and the end of a session whose worker is gone without a word.

mod ending;
mod setting;

use std::time::Duration;

use crate::queue::{Handed, Queue, Time};
use crate::road::Road;
use crate::support::database::{Database, server_port};
use crate::support::environment::Environment;
use crate::support::event::interview;
use crate::support::lambda::{Answer, Running, Sandbox};
use crate::support::notification;
use crate::support::proxy::Proxy;
use crate::support::ses::Ses;
use crate::support::sqs::Sqs;

pub use ending::Ending;
pub use setting::{InDoubt, Mode, Setting, Word};

pub const EVENT: &str = "the-event";

/// Of the queue of events, in seconds, as in the template.
const VISIBILITY_TIMEOUT: u64 = 180;
/// Of the queue of notifications. It must come round well before an event does, so that a crash of `feedback` doesn't
/// make SES's word late.
const FEEDBACK_VISIBILITY_TIMEOUT: u64 = 60;
/// Postgres ends the session of a worker that fell silent inside its transaction after the longest send.
const IDLE_IN_TRANSACTION: u64 = 11;
/// Of the functions, as in the template.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Where the deadline is waited for. A record isn't begun in the last five seconds; what comes before them is for a
/// slow machine to begin it in.
const HURRY: Duration = Duration::from_secs(8);

/// What was handed to a function that has not answered yet.
pub struct Invocation {
    ids: Vec<String>,
    running: Running,
}

impl Invocation {
    fn begin(sandbox: &Sandbox, handed: Handed, time: Duration) -> Self {
        Self {
            ids: handed.ids,
            running: sandbox.begin_within(handed.batch, time),
        }
    }

    async fn answer(self) -> (Vec<String>, Answer) {
        (self.ids, self.running.answer().await)
    }
}

pub struct Stage {
    pub database: Database,
    pub ses: Ses,
    pub road: Road,
    /// Between the worker and Postgres.
    pub postgres: Proxy,
    /// Between `feedback` and Postgres.
    pub postgres_of_feedback: Proxy,
    sqs: Sqs,
    setting: Setting,
    /// Of the worker that comes next.
    mode: Mode,
    events: Queue,
    event_ids: Vec<&'static str>,
    notifications: Queue,
    emails_told: usize,
    worker: Option<Sandbox>,
    other_workers: Vec<Sandbox>,
    feedback: Option<Sandbox>,
    now: Time,
    second_emails: usize,
}

impl Stage {
    /// The event is on its queue, and nobody has it.
    pub async fn set(setting: Setting) -> Self {
        let database = Database::create().await;
        let ses = Ses::start().await;
        let port = ses
            .url()
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok());
        let road = Road::start(port.expect("a URL with a port")).await;
        let mut stage = Self {
            database,
            ses,
            road,
            postgres: Proxy::start(server_port()).await,
            postgres_of_feedback: Proxy::start(server_port()).await,
            sqs: Sqs::start().await,
            setting,
            mode: setting.first,
            events: Queue::new("events", VISIBILITY_TIMEOUT),
            event_ids: Vec::new(),
            notifications: Queue::new("notifications", FEEDBACK_VISIBILITY_TIMEOUT),
            emails_told: 0,
            worker: None,
            other_workers: Vec::new(),
            feedback: None,
            now: 0,
            second_emails: 0,
        };
        stage.put(EVENT, 0);
        stage
    }

    /// Puts a message about this event on the queue: for an event that has one already, its duplicate.
    pub fn put(&mut self, event_id: &'static str, after: u64) {
        self.events.put(&interview(event_id), self.now + after);
        if !self.event_ids.contains(&event_id) {
            self.event_ids.push(event_id);
        }
    }

    fn environment(&self) -> Environment {
        let url = self.database.url_at(self.postgres.port());
        Environment::notify(&url, &self.ses)
            .with("AWS_ENDPOINT_URL_SESV2", &self.road.url())
            .with("AWS_ENDPOINT_URL_SQS", &self.sqs.url())
            .with("DEAD_LETTER_QUEUE_URL", &self.sqs.queue_url("dead-letters"))
            .with("CLAIM_MODE", self.mode.value())
            .with("IN_DOUBT", self.setting.in_doubt.value())
    }

    /// The worker; after a crash, the next one.
    pub async fn worker(&mut self) -> &Sandbox {
        if self.worker.is_none() {
            self.worker = Some(Sandbox::start(&self.environment()).await);
        }
        self.worker.as_ref().expect("it was started")
    }

    async fn feedback(&mut self) -> &Sandbox {
        if self.feedback.is_none() {
            let url = self.database.url_at(self.postgres_of_feedback.port());
            let environment = Environment::feedback(&url, &self.sqs);
            self.feedback = Some(Sandbox::start_function("feedback", &environment).await);
        }
        self.feedback.as_ref().expect("it was started")
    }

    /// Hands what is visible to the worker.
    pub async fn begin(&mut self) -> Invocation {
        self.begin_within(TIMEOUT).await
    }

    /// The same, for a worker that may come to wait for the end of its time.
    pub async fn begin_in_a_hurry(&mut self) -> Invocation {
        self.begin_within(HURRY).await
    }

    async fn begin_within(&mut self, time: Duration) -> Invocation {
        let handed = self.events.receive(self.now);
        Invocation::begin(self.worker().await, handed, time)
    }

    /// Hands what is visible to a worker of its own.
    pub async fn begin_at_another_worker(&mut self) -> Invocation {
        let handed = self.events.receive(self.now);
        let worker = Sandbox::start(&self.environment()).await;
        let invocation = Invocation::begin(&worker, handed, TIMEOUT);
        self.other_workers.push(worker);
        invocation
    }

    /// Waits for the worker's answer, by which SQS deletes the message or keeps it.
    pub async fn end(&mut self, invocation: Invocation) {
        let (ids, answer) = invocation.answer().await;
        self.events.answered(&ids, &answer, &self.sqs);
        self.change_mode().await;
    }

    /// The worker's answer is on its way and never arrives.
    pub async fn lose_answer(&mut self, invocation: Invocation) {
        let (_, answer) = invocation.answer().await;
        answer.assert_none_failed();
        self.events.unanswered(&self.sqs);
        self.change_mode().await;
    }

    /// Whoever comes after the first invocation is in the mode that follows, as when that is changed in a deployment.
    async fn change_mode(&mut self) {
        if self.mode != self.setting.next {
            self.mode = self.setting.next;
            if let Some(worker) = self.worker.take() {
                worker.kill().await;
            }
        }
    }

    /// The worker is gone, with whatever it was doing, and nobody tells SQS.
    pub async fn crash(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.kill().await;
        }
        self.mode = self.setting.next;
        self.events.unanswered(&self.sqs);
    }

    /// Hands the notifications that are due to `feedback`.
    pub async fn begin_hearing(&mut self) -> Invocation {
        self.tell();
        let due = self.notifications.next_at();
        self.pass_time_until(due.expect("SES has something to tell"))
            .await;
        let handed = self.notifications.receive(self.now);
        Invocation::begin(self.feedback().await, handed, HURRY)
    }

    pub async fn end_hearing(&mut self, invocation: Invocation) {
        let (ids, answer) = invocation.answer().await;
        self.notifications.answered(&ids, &answer, &self.sqs);
    }

    /// It answers, and the answer never arrives.
    pub async fn lose_answer_of_feedback(&mut self, invocation: Invocation) {
        let (_, answer) = invocation.answer().await;
        answer.assert_none_failed();
    }

    pub async fn crash_of_feedback(&mut self) {
        if let Some(feedback) = self.feedback.take() {
            self.count_second_emails(&feedback).await;
        }
        self.notifications.unanswered(&self.sqs);
    }

    /// SES tells of emails that it took and has not told of.
    fn tell(&mut self) {
        let after = match self.setting.word {
            Word::InTime => 2,
            Word::Late => VISIBILITY_TIMEOUT + 20,
            Word::Never => return,
        };
        let emails = self.ses.emails();
        for email in &emails[self.emails_told..] {
            // In no order, and the one that matters twice.
            for kind in ["delivery", "send", "send"] {
                let told = notification::of_email(kind, email);
                self.notifications.put(&told, self.now + after);
            }
        }
        self.emails_told = emails.len();
    }

    /// Lets everything happen that is still to happen.
    pub async fn play_on(&mut self) {
        const MOST: usize = 12;
        for _ in 0..MOST {
            self.tell();
            let (event, word) = (self.events.next_at(), self.notifications.next_at());
            let Some(next) = event.into_iter().chain(word).min() else {
                return;
            };
            self.pass_time_until(next).await;
            if word == Some(next) {
                let hearing = self.begin_hearing().await;
                self.end_hearing(hearing).await;
            } else {
                let work = self.begin().await;
                self.end(work).await;
            }
        }
        panic!("after {MOST} invocations there are still messages on a queue");
    }

    /// Lets time pass until the next delivery of an event.
    pub async fn wait_for_delivery(&mut self) {
        let next = self.events.next_at();
        self.pass_time_until(next.expect("a message that comes back"))
            .await;
    }

    async fn pass_time_until(&mut self, next: Time) {
        let seconds = next.saturating_sub(self.now);
        self.now += seconds;
        let earlier = format!(
            "UPDATE sends_in_doubt SET in_doubt_until = in_doubt_until - interval '{seconds} seconds'; \
             UPDATE processed_events SET lease_until = lease_until - interval '{seconds} seconds' \
              WHERE lease_until IS NOT NULL"
        );
        self.database.execute(&earlier).await;
        if self.now >= IDLE_IN_TRANSACTION {
            self.database.end_open_transactions().await;
        }
    }
}
