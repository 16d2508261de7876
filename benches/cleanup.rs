//! How long a batch of `cleanup` takes on a large ledger, and what the claims beside it notice.
//!
//!     make cleanup-figures            # 10 million rows, half of them old: some 15 minutes
//!     make cleanup-figures ROWS=1000000
//!
//! The claims are made at a steady rate, as a worker makes them, in turns: without a run of the real binary beside
//! them and with one, so that what else the machine does falls on both.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::process::Command;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_postgres::{Client, NoTls};

const DATABASE: &str = "cleanup_figures";
/// Workers that claim at the same time, and how often each does.
const WORKERS: usize = 4;
const PERIOD: Duration = Duration::from_millis(40);
/// Of claims alone; a run by hand takes up to half a minute.
const TURN: Duration = Duration::from_secs(12);
/// Rows of the ledger for one of `email_feedback`.
const LEDGER_FOR_FEEDBACK: u64 = 10;
const LONGEST_BATCH_MS: u64 = 1000;

/// What a run says of itself.
#[derive(Debug)]
struct Run {
    deleted: u64,
    elapsed_ms: u64,
    longest_batch_ms: u64,
    finished: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rows: u64 = std::env::var("ROWS")
        .ok()
        .and_then(|rows| rows.parse().ok())
        .unwrap_or(10_000_000);
    let url = create().await;
    fill(&url, rows).await;

    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(connect(&url).await);
    }
    claim_for(&workers, Duration::from_secs(5)).await;

    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let mut runs = Vec::new();
    loop {
        alone.extend(claim_for(&workers, TURN).await);
        let cleaning = tokio::task::spawn_blocking({
            let url = url.clone();
            move || clean(&url)
        });
        let claiming = claim_while(&workers, || !cleaning.is_finished());
        beside.extend(claiming.await);
        let run = cleaning.await.expect("a run that ends");
        println!("\n{run:?}");
        let finished = run.finished;
        runs.push(run);
        report(rows, &runs, &mut alone, &mut beside);
        if finished {
            break;
        }
    }
    let deleted: u64 = runs.iter().map(|run| run.deleted).sum();
    assert!(deleted >= rows / 2, "not all that is old was deleted");
    let too_long = runs
        .iter()
        .find(|run| run.longest_batch_ms >= LONGEST_BATCH_MS);
    assert!(too_long.is_none(), "a batch took too long: {too_long:?}");
}

/// What is known until now.
fn report(rows: u64, runs: &[Run], alone: &mut [Duration], beside: &mut [Duration]) {
    let deleted: u64 = runs.iter().map(|run| run.deleted).sum();
    let elapsed: u64 = runs.iter().map(|run| run.elapsed_ms).sum();
    let longest = runs.iter().map(|run| run.longest_batch_ms).max();
    let longest = longest.unwrap_or_default();
    println!(
        "rows in the ledger: {rows}; deleted: {deleted} in {} runs",
        runs.len()
    );
    println!("rows a second: {}", deleted * 1000 / elapsed.max(1));
    println!("longest batch: {longest} ms");
    println!("claims: {} without, {} with", alone.len(), beside.len());
    for (name, percent) in [("median", 50), ("p90", 90), ("p99", 99)] {
        let (without, with) = (percentile(alone, percent), percentile(beside, percent));
        let slower = (with.as_secs_f64() / without.as_secs_f64() - 1.0) * 100.0;
        println!(
            "a claim and its commit, {name}: {:.2} ms without, {:.2} ms with ({slower:+.0} %)",
            without.as_secs_f64() * 1000.0,
            with.as_secs_f64() * 1000.0,
        );
    }
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

/// A database of its own, migrated by the binary.
async fn create() -> String {
    let server = std::env::var("ONEMAIL_TEST_DATABASE_URL").expect("run `make cleanup-figures`");
    let administrator = connect(&server).await;
    execute(&administrator, &format!("CREATE DATABASE {DATABASE}")).await;
    let (base, _) = server.rsplit_once('/').expect("a URL with a database");
    let url = format!("{base}/{DATABASE}");
    let migrated = binary(&url, "migrate");
    assert!(migrated.status.success(), "{migrated:?}");
    url
}

/// Keys like those of real events, whose order says nothing of their age; half of the rows are older than thirty days.
async fn fill(url: &str, rows: u64) {
    let client = connect(url).await;
    let started = Instant::now();
    let feedback = rows / LEDGER_FOR_FEEDBACK;
    // The keys' index is made afterwards: grown by keys in no order, it would take most of the time.
    for statement in [
        "ALTER TABLE processed_events DROP CONSTRAINT processed_events_pkey".to_owned(),
        format!(
            "INSERT INTO processed_events \
                    (event_id, event_type, processed_at, outcome, ses_message_id, settled_by, payload_sha256) \
             SELECT gen_random_uuid()::text, 'application.status_changed', \
                    now() - interval '60 days' + n * (interval '60 days' / {rows}), \
                    'sent', '0102018f' || md5(n::text) || '-000000', 'worker', sha256(n::text::bytea) \
               FROM generate_series(1, {rows}) AS n"
        ),
        format!(
            "INSERT INTO email_feedback (event_id, ses_message_id, kind, occurred_at, detail) \
             SELECT gen_random_uuid()::text, '0102018f' || md5(n::text) || '-000000', 'delivery', \
                    now() - interval '60 days' + n * (interval '60 days' / {feedback}), '{{\"recipients\": 1}}' \
               FROM generate_series(1, {feedback}) AS n"
        ),
        "ALTER TABLE processed_events ADD PRIMARY KEY (event_id)".to_owned(),
        "VACUUM ANALYZE processed_events".to_owned(),
        "VACUUM ANALYZE email_feedback".to_owned(),
        "CHECKPOINT".to_owned(),
    ] {
        execute(&client, &statement).await;
    }
    println!("filled in {} s", started.elapsed().as_secs());
}

async fn claim_for(workers: &[Client], time: Duration) -> Vec<Duration> {
    let end = Instant::now() + time;
    claim_while(workers, || Instant::now() < end).await
}

/// How long each claim took, with its commit.
async fn claim_while(workers: &[Client], go_on: impl Fn() -> bool) -> Vec<Duration> {
    let times = join_all(workers.iter().map(|worker| async {
        let mut times = Vec::new();
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while go_on() {
            ticks.tick().await;
            let started = Instant::now();
            claim(worker).await;
            times.push(started.elapsed());
        }
        times
    }));
    times.await.concat()
}

/// The statements of `src/claim/sql.rs`, two round trips as there.
async fn claim(worker: &Client) {
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    // Spread over the index, as real keys are.
    let key = format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let claimed = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 5000; SET LOCAL statement_timeout = 10000; \
         INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256) \
         SELECT '{key}', 'order.placed', 'sent', 'worker', sha256('{key}') \
         ON CONFLICT (event_id) DO NOTHING; \
         SELECT outcome FROM processed_events WHERE event_id = '{key}'"
    );
    execute(worker, &claimed).await;
    let settled = format!(
        "UPDATE processed_events SET outcome = 'sent', ses_message_id = '0102018f-{key}' \
          WHERE event_id = '{key}'; COMMIT"
    );
    execute(worker, &settled).await;
}

/// One run of the real binary, by hand.
fn clean(url: &str) -> Run {
    let output = binary(url, "cleanup");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("the answer alone");
    let field = |name: &str| {
        let (_, value) = log.split_once(&format!("{name}="))?;
        value.split_whitespace().next()
    };
    let number = |name: &str| field(name).and_then(|text| text.parse().ok());
    Run {
        deleted: answer["deleted"].as_u64().expect("a number"),
        elapsed_ms: number("elapsed_ms").expect("its time"),
        longest_batch_ms: number("longest_batch_ms").expect("its longest batch"),
        finished: field("finished") == Some("true"),
    }
}

fn binary(url: &str, function: &str) -> std::process::Output {
    let empty = std::process::Stdio::null();
    let payload = std::env::temp_dir().join(format!("onemail-{}.json", std::process::id()));
    std::fs::write(&payload, "{}").expect("a writable directory");
    let output = Command::new(env!("CARGO_BIN_EXE_onemail"))
        .arg(function)
        .arg(&payload)
        .env("DATABASE_URL", url)
        .stdin(empty)
        .output();
    std::fs::remove_file(&payload).expect("it is still there");
    output.expect("the binary starts")
}

async fn connect(url: &str) -> Client {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = connected.expect("the server takes connections");
    tokio::spawn(connection);
    client
}

async fn execute(client: &Client, statements: &str) {
    let executed = client.batch_execute(statements).await;
    executed.unwrap_or_else(|error| panic!("{error:?}: {statements}"));
}
