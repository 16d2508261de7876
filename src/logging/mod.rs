//! Structured logs: JSON lines in Lambda, readable lines outside.
//!
//! The rule: a message and fields; units in names; a failure once, where it is decided what it means; never an
//! address, a name, a body or a secret. What looks like an address in a value is masked, since producers put some into
//! keys. Libraries are kept to warnings, since on finer levels some of them
//! print requests.

mod json_line;
mod mask;
mod text_line;

pub(crate) use mask::mask_addresses;

#[cfg(test)]
pub(crate) use json_line::tests::lines_of;

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::Env;

use json_line::JsonLine;
use text_line::TextLine;

/// Inside Lambda: lines to standard output, as `AWS_LAMBDA_LOG_FORMAT` and `AWS_LAMBDA_LOG_LEVEL` say.
pub fn init_in_lambda(env: &Env) {
    let level = env
        .get("AWS_LAMBDA_LOG_LEVEL")
        .and_then(lambda_level)
        .unwrap_or(LevelFilter::INFO);
    let layer = tracing_subscriber::fmt::layer().log_internal_errors(false);
    let registry = tracing_subscriber::registry().with(our_level(level));
    let as_text = env
        .get("AWS_LAMBDA_LOG_FORMAT")
        .is_some_and(|format| format.eq_ignore_ascii_case("text"));
    if as_text {
        registry
            .with(layer.with_ansi(false).event_format(TextLine::new()))
            .init();
    } else {
        registry.with(layer.event_format(JsonLine)).init();
    }
    log_panics();
}

/// By hand: readable lines to standard error, as `RUST_LOG` says; standard output is for the answer.
pub fn init_by_hand(env: &Env) {
    let targets = env
        .get("RUST_LOG")
        .and_then(|directives| directives.parse::<Targets>().ok())
        .unwrap_or_else(|| our_level(LevelFilter::INFO));
    tracing_subscriber::registry()
        .with(targets)
        .with(
            tracing_subscriber::fmt::layer()
                .log_internal_errors(false)
                .with_writer(io::stderr)
                .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
                .event_format(TextLine::new()),
        )
        .init();
    log_panics();
}

fn our_level(level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("onemail", level)
        // It repeats each failed invocation, which we have logged.
        .with_target("lambda_runtime::layers::panic", LevelFilter::OFF)
}

/// <https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html>
fn lambda_level(name: &str) -> Option<LevelFilter> {
    Some(match name.to_ascii_uppercase().as_str() {
        "TRACE" => LevelFilter::TRACE,
        "DEBUG" => LevelFilter::DEBUG,
        "INFO" => LevelFilter::INFO,
        "WARN" => LevelFilter::WARN,
        "ERROR" | "FATAL" => LevelFilter::ERROR,
        _ => return None,
    })
}

/// Where a panic happened, without its message, which can quote a value.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(|place| format!("{}:{}", place.file(), place.line()));
        tracing::error!(place, "panicked");
    }));
}
