//! For whoever writes an email: its schema, and how it looks.
//!
//! `make emails` writes `event.schema.json` into each folder of `emails/`, and a page with each sample as an email,
//! `target/emails/index.html`. Recipients come from the job board of `local/jobboard.sql`, so it needs a Postgres;
//! `cargo run --example emails schemas` does not, and writes the schemas alone.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the command line"
)]

#[path = "../../tests/emails/jobboard.rs"]
mod jobboard;
mod page;
mod previews;
#[path = "../../tests/emails/query.rs"]
mod query;
#[path = "../../tests/emails/rehearsal.rs"]
mod rehearsal;
mod schemas;
#[path = "../../tests/emails/source.rs"]
mod source;

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use onemail::emails::Catalogue;

use source::Source;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(std::env::args().nth(1).as_deref()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(what: Option<&str>) -> anyhow::Result<()> {
    let with_previews = match what {
        None => true,
        Some("schemas") => false,
        Some(_) => bail!("usage: cargo run --example emails [schemas]"),
    };
    let (source, catalogue) = load()?;
    schemas::write(&source, &catalogue)?;
    if with_previews {
        previews::write(&source, &catalogue).await?;
    }
    Ok(())
}

fn load() -> anyhow::Result<(Source, Catalogue)> {
    let source = Source::on_disk()?;
    match source.catalogue() {
        Ok(catalogue) => Ok((source, catalogue)),
        Err(problem) => Err(anyhow!(source.explain(&problem))),
    }
}
