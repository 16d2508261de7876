//! What lease mode is for: as many sandboxes as exhaust the database's connections in transaction mode, and a volume
//! that needs them.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::support::database::Database;
use crate::support::event::{Record, batch, interview};
use crate::support::lambda::Sandbox;
use crate::support::ses::Reply;
use crate::support::world::World;

const EVENTS: usize = 2000;
const SANDBOXES: usize = 10;
const BATCH_SIZE: usize = 10;
/// Of the database, for the function.
const CONNECTIONS: usize = 20;
const SES_TIME: Duration = Duration::from_millis(100);

struct Figures {
    took: Duration,
    sent: usize,
    /// Events that came back, each of which was delivered once.
    failed: usize,
    /// Records that came back because Postgres had no connection left.
    turned_away: usize,
    most_connections: usize,
}

/// A queue with nothing but its messages.
#[derive(Clone)]
struct Queue(Arc<Mutex<Vec<usize>>>);

impl Queue {
    async fn receive(&self) -> Vec<usize> {
        let mut messages = self.0.lock().await;
        let rest = messages.len().saturating_sub(BATCH_SIZE);
        messages.split_off(rest)
    }
}

fn message_id(number: usize) -> String {
    format!("m-{number}")
}

/// Hands out each event once.
async fn work_off(mode: &str) -> Figures {
    let world = World::start_with(|environment| environment.with("CLAIM_MODE", mode)).await;
    world.ses.reply_always(Reply::accept().delayed(SES_TIME));
    let limit = format!(
        "ALTER ROLE {} NOSUPERUSER CONNECTION LIMIT {CONNECTIONS}",
        world.database.name()
    );
    let watcher = world.database.another_handle().await;
    watcher.execute(&limit).await;
    let mut sandboxes = Vec::new();
    for _ in 0..SANDBOXES {
        sandboxes.push(Arc::new(world.another_sandbox().await));
    }

    let over = Arc::new(AtomicBool::new(false));
    let watching = tokio::spawn(most_connections(watcher, over.clone()));
    let queue = Queue(Arc::new(Mutex::new((0..EVENTS).collect())));
    let failed = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut workers = JoinSet::new();
    for sandbox in &sandboxes {
        workers.spawn(work(sandbox.clone(), queue.clone(), failed.clone()));
    }
    while let Some(ended) = workers.join_next().await {
        ended.expect("no worker panics");
    }
    let took = began.elapsed();
    over.store(true, Ordering::Relaxed);

    let emails = world.ses.emails();
    let events: HashSet<_> = emails.iter().map(|email| email.tag("event_id")).collect();
    assert_eq!(emails.len(), events.len(), "{mode}: one email an event");
    let failed = failed.load(Ordering::Relaxed);
    assert_eq!(emails.len() + failed, EVENTS, "{mode}: sent or reported");
    let mut turned_away = 0;
    for sandbox in &sandboxes {
        sandbox.kill().await;
        let lines = sandbox.logs.to_the_end().await;
        turned_away += lines
            .iter()
            .filter(|line| line.outcome() == "released" && line.field("code") == "53300")
            .count();
    }
    Figures {
        took,
        sent: emails.len(),
        failed,
        turned_away,
        most_connections: watching.await.expect("it only counts"),
    }
}

async fn work(sandbox: Arc<Sandbox>, queue: Queue, failed: Arc<AtomicUsize>) {
    loop {
        let messages = queue.receive().await;
        if messages.is_empty() {
            return;
        }
        let records = messages.iter().map(|number| {
            let event = interview(&format!("event-{number}"));
            Record::new(&message_id(*number), &event)
        });
        let answer = sandbox.invoke(batch(records)).await;
        failed.fetch_add(answer.failed.len(), Ordering::Relaxed);
    }
}

/// Looks again and again, from a connection that isn't counted.
async fn most_connections(watcher: Database, over: Arc<AtomicBool>) -> usize {
    let count =
        "SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND application_name = 'onemail'";
    let mut most = 0;
    while !over.load(Ordering::Relaxed) {
        let name = watcher.name().to_owned();
        let open: i64 = watcher.query(count, &[&name]).await[0].get(0);
        most = most.max(usize::try_from(open).expect("a count"));
    }
    most
}

#[tokio::test]
async fn lease_mode_gets_by_with_connections_that_transaction_mode_exhausts() {
    let transaction = work_off("transaction").await;
    let lease = work_off("lease").await;

    let mut table = format!(
        "\n{EVENTS} events, {SANDBOXES} sandboxes, {CONNECTIONS} connections, SES answers in {} ms:\n\
         | mode | took | emails | reported as failed | turned away by Postgres | most connections at once |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
        SES_TIME.as_millis()
    );
    for (mode, figures) in [("transaction", &transaction), ("lease", &lease)] {
        table += &format!(
            "| {mode} | {:.1} s | {} | {} | {} | {} |\n",
            figures.took.as_secs_f64(),
            figures.sent,
            figures.failed,
            figures.turned_away,
            figures.most_connections
        );
    }
    let mut out = std::io::stdout().lock();
    out.write_all(table.as_bytes())
        .expect("standard output takes it");
    drop(out);

    assert!(transaction.turned_away > 0, "nothing was exhausted");
    assert_eq!(
        (lease.sent, lease.failed, lease.turned_away),
        (EVENTS, 0, 0)
    );
    assert!(lease.most_connections <= SANDBOXES);
}
