//! What SES says of its emails: recorded once each, and a claim completed that its worker could not.

mod claims;
mod failures;
mod kinds;
mod second_emails;

use serde_json::Value;

use crate::support::database::{Database, Told, server_port};
use crate::support::environment::Environment;
use crate::support::event::{Record, batch};
use crate::support::lambda::Sandbox;
use crate::support::logs::Line;
use crate::support::mode::Mode;
use crate::support::notification::record;
use crate::support::proxy::Proxy;
use crate::support::sqs::Sqs;
use crate::support::world::World;

/// The function `feedback` alone: nothing has been claimed.
struct Listener {
    database: Database,
    sqs: Sqs,
    sandbox: Sandbox,
}

impl Listener {
    async fn start() -> Self {
        let database = Database::create().await;
        let url = database.url();
        Self::on(database, &url).await
    }

    async fn start_with_proxy() -> (Self, Proxy) {
        let database = Database::create().await;
        let proxy = Proxy::start(server_port()).await;
        let url = database.url_at(proxy.port());
        (Self::on(database, &url).await, proxy)
    }

    async fn on(database: Database, url: &str) -> Self {
        let sqs = Sqs::start().await;
        let environment = Environment::feedback(url, &sqs);
        let sandbox = Sandbox::start_function("feedback", &environment).await;
        Self {
            database,
            sqs,
            sandbox,
        }
    }

    /// The same database, with a worker that sends.
    async fn with_worker() -> (World, Self) {
        Self::with_worker_in(Mode::of_this_run()).await
    }

    async fn with_worker_in(mode: Mode) -> (World, Self) {
        let world = World::start_in(mode).await;
        let listener = Self::on(world.database.another_handle().await, &world.database.url()).await;
        (world, listener)
    }

    async fn hears(&self, notification: &Value) {
        self.hears_all([record("n-1", notification)]).await;
    }

    async fn hears_all(&self, records: impl IntoIterator<Item = Record>) {
        self.sandbox
            .invoke(batch(records))
            .await
            .assert_none_failed();
    }

    async fn line(&self, description: &str, message_id: &str) -> Line {
        self.sandbox
            .logs
            .wait_for(description, |line| {
                line.field("message_id") == message_id && !line.outcome().is_empty()
            })
            .await
    }

    /// Everything that the function has written, once it is gone.
    async fn log(&self) -> Vec<Line> {
        self.sandbox.kill().await;
        self.sandbox.logs.to_the_end().await
    }
}

/// How much was counted under this name in all.
fn counted(lines: &[Line], metric: &str) -> u64 {
    lines
        .iter()
        .filter(|line| line.is_metric())
        .filter_map(|line| line.field(metric).as_f64())
        .map(|count| count as u64)
        .sum()
}

fn with_outcome<'a>(lines: &'a [Line], outcome: &str) -> Vec<&'a Line> {
    let lines = lines.iter();
    lines.filter(|line| line.outcome() == outcome).collect()
}

fn kinds(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.kind.as_str()).collect()
}
