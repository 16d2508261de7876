//! What an error means: one table decides it for SES and the way to it, one for Postgres, and each row is tried here.

mod postgres;
mod postgres_for_real;
mod ses;
mod way_to_postgres;
mod way_to_ses;

use serde_json::{Value, json};

use crate::support::logs::Line;
use crate::support::world::World;

/// What became of a record, as its line tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ending<'a> {
    outcome: &'a str,
    level: &'a str,
    reason: Option<&'a str>,
    code: Option<&'a str>,
}

impl<'a> Ending<'a> {
    fn of(line: &'a Line) -> Self {
        Self {
            outcome: line.outcome(),
            level: line.level(),
            reason: line.field("reason").as_str(),
            code: line.field("code").as_str(),
        }
    }

    /// Not sent, for a reason that passes.
    fn try_again(reason: &'a str, code: &'a str) -> Self {
        Self {
            outcome: "released",
            level: "WARN",
            reason: Some(reason),
            code: Some(code),
        }
    }

    /// Not sent, and ours to fix.
    fn ours(reason: &'a str, code: &'a str) -> Self {
        Self {
            level: "ERROR",
            ..Self::try_again(reason, code)
        }
    }

    /// What another connection did not cure: it passes, but for a password or token that stays wrong.
    fn not_cured(code: &'a str) -> Self {
        if code.starts_with("28") {
            Self::ours("database_setup", code)
        } else {
            Self::try_again("database", code)
        }
    }

    /// Never to be sent.
    fn never(reason: &'a str, code: &'a str) -> Self {
        Self {
            outcome: "refused",
            ..Self::ours(reason, code)
        }
    }

    fn unknown(code: &'a str) -> Self {
        Self {
            outcome: "unknown",
            level: "WARN",
            reason: None,
            code: Some(code),
        }
    }
}

/// What the first invocation counted.
async fn counts(world: &World) -> Value {
    let line = world
        .sandbox
        .logs
        .wait_for("the metrics", Line::is_metric)
        .await;
    let names = [
        "Sent",
        "Released",
        "SetupErrors",
        "OutcomeUnknown",
        "Refused",
    ];
    let counted = names.into_iter().filter_map(|name| {
        let count = line.field(name).as_f64()?;
        Some((name.to_owned(), json!(count as u64)))
    });
    Value::Object(counted.collect())
}
