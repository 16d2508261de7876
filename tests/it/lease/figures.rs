//! What a batch of ten costs Postgres, as Postgres itself counts it, on a server that nobody else uses.

#[path = "../../storm/postgres.rs"]
mod postgres;

mod counters;

use std::io::Write as _;

use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::lambda::Sandbox;
use crate::support::mode::Mode;
use crate::support::ses::{Reply, Ses};

use counters::{Cost, Server};

fn ten() -> serde_json::Value {
    let names = (1..=10).map(|number| format!("event-{number}"));
    batch(names.map(|name| Record::new(&name, &interview(&name))))
}

/// A batch of ten at a new sandbox, whose emails are all underway before the first is answered.
async fn cost_of_ten(server: &Server, database: &str, mode: Mode, emails: usize) -> Cost {
    let ses = Ses::start().await;
    let gate = Gate::closed();
    ses.reply_always(Reply::accept().after(&gate));
    let environment = Environment::notify(&Server::url(server.port(), database), &ses)
        .with("CLAIM_MODE", mode.name());
    let sandbox = Sandbox::start(&environment).await;
    server
        .cost_of(database, async {
            let running = sandbox.begin(ten());
            ses.received(emails).await;
            ses.reply_at_once(&gate, &sandbox).await;
            running.answer().await.assert_none_failed();
            // What a session has counted is told at its end.
            sandbox.kill().await;
        })
        .await
}

/// New events, and then the same as duplicates.
async fn costs(server: &Server, mode: Mode) -> [Cost; 2] {
    let database = format!("figures_{}", mode.name());
    server.make_database(&database).await;
    let new = cost_of_ten(server, &database, mode, 10).await;
    // Nothing of the tests' own makes is left to be written: neither dead rows nor hints.
    server.vacuum(&database).await;
    cost_of_ten(server, &database, mode, 0).await;
    let duplicates = cost_of_ten(server, &database, mode, 0).await;
    [new, duplicates]
}

/// Written past the test runner, which shows what `print!` says only of tests that fail.
fn print(rows: &[(&str, Cost)]) {
    let mut table = format!(
        "\n| ten events at a cold sandbox | {} |\n",
        Cost::NAMES.join(" | ")
    );
    table += &format!("| --- |{}\n", " ---: |".repeat(Cost::NAMES.len()));
    for (name, cost) in rows {
        let figures = cost.figures().map(|figure| figure.to_string());
        table += &format!("| {name} | {} |\n", figures.join(" | "));
    }
    let mut out = std::io::stdout().lock();
    out.write_all(table.as_bytes())
        .expect("standard output takes it");
}

#[tokio::test]
async fn ten_new_events_are_two_commits_on_one_connection_and_ten_duplicates_one_statement_that_writes_nothing()
 {
    let server = Server::start().await;
    let [new, duplicates] = costs(&server, Mode::Lease).await;
    let [new_in_transactions, duplicates_in_transactions] = costs(&server, Mode::Transaction).await;
    server.stop().await;
    print(&[
        ("new, lease", new),
        ("new, transaction", new_in_transactions),
        ("duplicates, lease", duplicates),
        ("duplicates, transaction", duplicates_in_transactions),
    ]);

    assert!(new.commits <= 2 && new.connections == 1, "{new:?}");
    assert_eq!(
        new.transaction_ids, 2,
        "a claim and a settlement that write"
    );
    let one_statement_and_no_write = Cost {
        connections: 1,
        statements: 1,
        commits: 1,
        ..Cost::default()
    };
    assert_eq!(duplicates, one_statement_and_no_write);
    // The counters do count: what the other mode is known to cost is there.
    assert_eq!(new_in_transactions.connections, 10);
    assert_eq!(new_in_transactions.commits, 10);
}
