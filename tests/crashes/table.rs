//! Runs the cases, a few at a time, and prints what became of each.

use std::fmt::Write as _;
use std::io::Write as _;

use futures_util::{StreamExt as _, stream};

use crate::stage::{Ending, Setting};

/// Each waits more than it works.
const AT_ONCE: usize = 6;

/// A column of a table. A case must come to the same in each of its settings.
pub struct Column {
    pub heading: &'static str,
    pub settings: Vec<Setting>,
}

/// What was run, what it must come to, and what it came to.
struct Run {
    setting: Setting,
    must: Ending,
    ending: Option<Ending>,
}

impl Run {
    /// Spawned, so that one that panics is told with the others.
    async fn of(
        setting: Setting,
        must: Ending,
        run: impl Future<Output = Ending> + Send + 'static,
    ) -> Self {
        Self {
            setting,
            must,
            ending: tokio::spawn(run).await.ok(),
        }
    }

    fn is_right(&self) -> bool {
        self.ending.as_ref() == Some(&self.must)
    }
}

/// What a case came to in the settings of a column.
struct Cell(Vec<Run>);

impl Cell {
    fn text(&self) -> String {
        match self.0.first() {
            Some(run) if self.0.iter().all(Run::is_right) => {
                format!("{}, {}", run.must.emails, run.must.settled_by)
            }
            _ => "it failed".to_owned(),
        }
    }
}

/// Runs every case in every setting, prints the table, and fails if one came to something else than it must.
pub async fn check<C, F>(
    title: &str,
    columns: &[Column],
    cases: Vec<C>,
    name: impl Fn(C) -> String,
    must: impl Fn(C, Setting) -> Ending,
    run: impl Fn(C, Setting) -> F,
) where
    C: Copy,
    F: Future<Output = Ending> + Send + 'static,
{
    let runs = cases.iter().flat_map(|case| {
        let settings = columns.iter().flat_map(|column| &column.settings);
        settings.map(|setting| Run::of(*setting, must(*case, *setting), run(*case, *setting)))
    });
    let mut runs = stream::iter(runs).buffered(AT_ONCE);
    let mut rows = Vec::with_capacity(cases.len());
    for case in &cases {
        let mut cells = Vec::with_capacity(columns.len());
        for column in columns {
            let next = runs.by_ref().take(column.settings.len());
            cells.push(Cell(next.collect().await));
        }
        rows.push((name(*case), cells));
    }
    print(title, columns, &rows);

    let wrong = rows.iter().flat_map(|(name, cells)| {
        let runs = cells.iter().flat_map(|cell| &cell.0);
        runs.filter(|run| !run.is_right()).map(move |run| {
            format!(
                "{name}: must be {:?}, came to {:?} with {:?}",
                run.must, run.ending, run.setting
            )
        })
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{title}:\n{}", wrong.join("\n"));
}

/// As `docs/proof.md` shows it: in each cell how many emails left, and by whom the claim was settled. Written past
/// the test runner, which shows what `print!` says only of tests that fail.
fn print(title: &str, columns: &[Column], rows: &[(String, Vec<Cell>)]) {
    let headings: String = columns
        .iter()
        .map(|column| format!(" {} |", column.heading))
        .collect();
    let mut table = format!(
        "\n| {title} |{headings}\n|{}\n",
        " --- |".repeat(columns.len() + 1)
    );
    for (name, cells) in rows {
        let cells: String = cells
            .iter()
            .map(|cell| format!(" {} |", cell.text()))
            .collect();
        writeln!(table, "| {name} |{cells}").expect("a string grows");
    }
    let mut out = std::io::stdout().lock();
    out.write_all(table.as_bytes())
        .expect("standard output takes it");
}
