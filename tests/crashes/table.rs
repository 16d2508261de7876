//! Runs the cases, a few at a time, and prints what became of each.

use std::fmt::Write as _;
use std::io::Write as _;

use futures_util::{StreamExt as _, stream};

use crate::stage::{Ending, Word};

/// Each waits more than it works.
const AT_ONCE: usize = 6;

/// What a case must come to.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Who settles the claim of the one email when SES's word comes in time.
    pub settled_by: &'static str,
    /// How many emails leave when it never comes, and who settles the claim; `None` where that is no case.
    pub without_word: Option<(usize, &'static str)>,
}

impl Expected {
    /// SES had not accepted, or the commit was done: nothing depends on SES's word.
    pub const SAFE: Self = Self {
        settled_by: "worker",
        without_word: Some((1, "worker")),
    };

    /// SES had accepted, and the commit was not done.
    pub const GAP: Self = Self {
        settled_by: "ses",
        without_word: Some((2, "worker")),
    };
}

/// What was run, what it must come to, and what it came to.
struct Run {
    must: Ending,
    ending: Option<Ending>,
}

impl Run {
    /// Spawned, so that one that panics is told with the others.
    async fn of(must: (usize, &str), run: impl Future<Output = Ending> + Send + 'static) -> Self {
        let (emails, settled_by) = must;
        Self {
            must: Ending {
                emails,
                settled_by: settled_by.to_owned(),
            },
            ending: tokio::spawn(run).await.ok(),
        }
    }

    fn is_right(&self) -> bool {
        self.ending.as_ref() == Some(&self.must)
    }

    fn cells(&self) -> String {
        match &self.ending {
            Some(ending) => format!(" {} | {} |", ending.emails, ending.settled_by),
            None => " ? | it failed |".to_owned(),
        }
    }
}

/// Runs every case with SES's word and without, prints the table, and fails if one came to something else than it
/// must.
pub async fn check<C, F>(
    title: &str,
    cases: Vec<C>,
    name: impl Fn(C) -> String,
    expected: impl Fn(C) -> Expected,
    run: impl Fn(C, Word) -> F,
) where
    C: Copy,
    F: Future<Output = Ending> + Send + 'static,
{
    let runs = cases.iter().map(|case| {
        let expected = expected(*case);
        let with = Run::of((1, expected.settled_by), run(*case, Word::InTime));
        let without = expected
            .without_word
            .map(|must| Run::of(must, run(*case, Word::Never)));
        async move {
            let mut runs = vec![with.await];
            if let Some(without) = without {
                runs.push(without.await);
            }
            runs
        }
    });
    let runs: Vec<_> = stream::iter(runs).buffered(AT_ONCE).collect().await;
    let rows = cases
        .iter()
        .zip(&runs)
        .map(|(case, runs)| (name(*case), runs.as_slice()));
    let rows: Vec<_> = rows.collect();
    print(title, &rows);

    let wrong = rows.iter().flat_map(|(name, runs)| {
        let wrong = runs.iter().filter(|run| !run.is_right());
        wrong.map(move |run| format!("{name}: must be {:?}, came to {:?}", run.must, run.ending))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{title}:\n{}", wrong.join("\n"));
}

/// As `docs/guarantee.md` shows it. Written past the test runner, which shows what `print!` says only of tests that
/// fail.
fn print(title: &str, rows: &[(String, &[Run])]) {
    let mut table = format!("\n| {title} | emails | settled by |");
    if rows.iter().any(|(_, runs)| runs.len() > 1) {
        table += " emails without SES's word | settled by |";
    }
    let columns = table.matches('|').count() - 1;
    table += &format!("\n|{}\n", " --- |".repeat(columns));
    for (name, runs) in rows {
        let cells: String = runs.iter().map(Run::cells).collect();
        writeln!(table, "| {name} |{cells}").expect("a string grows");
    }
    let mut out = std::io::stdout().lock();
    out.write_all(table.as_bytes())
        .expect("standard output takes it");
}
