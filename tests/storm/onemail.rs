//! The function in the storm: its workers, its queues, and all that it talks to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::chronicle::Chronicle;
use crate::jobboard;
use crate::notifications::Notifications;
use crate::plan::{Kind, Plan};
use crate::postgres::Postgres;
use crate::proxy::Proxy;
use crate::queue::{Queue, Rules};
use crate::ses::Ses;
use crate::sky::Sky;
use crate::sqs_api::SqsApi;
use crate::support::environment::{Environment, MAIL_FROM};
use crate::tally::Tally;
use crate::victims::Victims;
use crate::workers::{self, Crew};

/// A lease lasts for up to 13 seconds here: what comes back meets it in all its stages, alive, in doubt and over.
pub const RULES: Rules = Rules {
    visibility_timeout: Duration::from_secs(10),
    // As in the template.
    max_receive_count: 10,
};
/// What is said to come back after 22 of them, the least that the function asks for, does so here after
/// more than two: SES's word has as long as this in both.
pub const IN_DOUBT_WAIT: Duration = Duration::from_secs(2);
/// As in the template.
const NOTIFIERS: usize = 5;
const FEEDBACKERS: usize = 2;

pub struct Onemail {
    pub plan: Arc<Plan>,
    pub chronicle: Arc<Chronicle>,
    pub victims: Arc<Victims>,
    pub events: Arc<Queue>,
    pub notifications: Arc<Queue>,
    pub tally: Arc<Tally>,
    pub ses_tally: Arc<Tally>,
    pub strikes: Arc<Tally>,
    places: JoinSet<()>,
    closed: watch::Sender<bool>,
}

impl Onemail {
    pub async fn start(plan: &Arc<Plan>, sky: &Arc<Sky>, postgres: &Postgres) -> Self {
        let chronicle = Arc::new(Chronicle::default());
        let victims = Arc::new(Victims::new(chronicle.clone()));
        let tally = Arc::new(Tally::default());
        let queue = |name| Arc::new(Queue::new(name, RULES, plan.dice.roll("queue", name, 0)));
        let (events, notifications) = (queue("events"), queue("notifications"));
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
            Some(Notifications::new(
                plan.clone(),
                notifications.clone(),
                tally.clone(),
            )),
        )
        .await;
        let ses_tally = ses.tally.clone();
        let sqs = SqsApi::start(sky.clone(), events.clone(), notifications.clone()).await;
        let port = proxy.port();
        let sqs_url = sqs.url();
        let notifier = {
            let sqs_url = sqs_url.clone();
            let dead_letters = sqs.dead_letter_queue_url();
            let modes = plan.modes;
            move |worker: &str| {
                let environment = Environment::migrate(&jobboard::url_at(port, worker))
                    .with("MAIL_FROM", MAIL_FROM)
                    .with("SES_CONFIGURATION_SET", "onemail")
                    .with("RECIPIENT_ALLOW_LIST", jobboard::ALLOW_LIST)
                    .with("IN_DOUBT_WAIT", &IN_DOUBT_WAIT.as_secs().to_string())
                    .with("DEAD_LETTER_QUEUE_URL", &dead_letters)
                    .with("AWS_ENDPOINT_URL_SESV2", &ses.url_of(worker))
                    .with("AWS_ENDPOINT_URL_SQS", &sqs_url);
                modes.of_worker(worker, environment)
            }
        };
        let feedbacker = move |worker: &str| {
            Environment::migrate(&jobboard::url_at(port, worker))
                .with("AWS_ENDPOINT_URL_SQS", &sqs_url)
        };
        let closed = watch::Sender::new(false);
        let mut places = JoinSet::new();
        for (crew, count) in [
            (
                Crew {
                    handler: "notify",
                    letter: 'n',
                    queue: events.clone(),
                    victims: victims.clone(),
                    environment: Box::new(notifier),
                    tally: tally.clone(),
                },
                NOTIFIERS,
            ),
            (
                Crew {
                    handler: "feedback",
                    letter: 'f',
                    queue: notifications.clone(),
                    victims: victims.clone(),
                    environment: Box::new(feedbacker),
                    tally: tally.clone(),
                },
                FEEDBACKERS,
            ),
        ] {
            let crew = Arc::new(crew);
            for place in 0..count {
                places.spawn(workers::work(crew.clone(), place, closed.subscribe()));
            }
        }
        Self {
            plan: plan.clone(),
            chronicle,
            victims,
            events,
            notifications,
            tally,
            ses_tally,
            strikes: proxy.strikes,
            places,
            closed,
        }
    }

    /// Puts every message on the queue, each to be seen when its time comes.
    pub fn begin(&self, start: Instant) {
        for message in &self.plan.messages {
            for at in std::iter::once(message.at).chain(message.again_at) {
                self.events.send_at(&message.id, &message.body, start + at);
            }
        }
    }

    /// Waits until all events are handled, and all that SES said of them.
    pub async fn done(&mut self) {
        let emptied = async {
            self.events.emptied().await;
            self.notifications.emptied().await;
        };
        tokio::select! {
            () = emptied => {}
            Some(Err(fault)) = self.places.join_next() => panic!("a place of work broke down: {fault}"),
        }
    }

    /// Sends each event that must not lead to anything new once more.
    pub fn send_all_again(&self) {
        let mut rng = self.plan.dice.roll("again", "", 0);
        for (number, event) in self.plan.events.iter().enumerate() {
            if matches!(event.kind, Kind::Sendable | Kind::Gone | Kind::Withheld) {
                let id = format!("again-{number:06}");
                self.events
                    .send_at(&id, &event.body(0, &mut rng), Instant::now());
            }
        }
    }

    /// Ends the workers.
    pub async fn close(&mut self) {
        self.closed.send_replace(true);
        while let Some(ended) = self.places.join_next().await {
            ended.expect("a place of work closes in order");
        }
    }
}
