//! What the storm was and what came of it, for people and for `docs/proof.md`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::chronicle::Way;
use crate::designs::Trial;
use crate::findings::Findings;
use crate::onemail::Onemail;
use crate::plan::Plan;
use crate::settings::Settings;
use crate::tally::Tally;

/// Past the test harness, which shows nothing of a test that passes.
pub fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // Nobody may be reading.
    let _ = writeln!(stdout, "{text}");
}

pub fn progress(start: Instant, what: &str) {
    print(&format!(
        "storm: {what} after {:.0} s",
        start.elapsed().as_secs_f64()
    ));
}

pub fn forecast(settings: Settings, plan: &Plan) -> String {
    let sendable = plan.events.iter().filter(|event| event.kind.is_emailed());
    format!(
        "storm: {}, seed {}, {} binary, {} events ({} to be emailed) in {} messages over {} s, {} strokes of weather\n\
         storm: to see it again: make storm MODE={} SEED={} SECONDS={} EVENTS={}",
        settings.modes.name(),
        settings.seed,
        if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        },
        plan.events.len(),
        sendable.count(),
        plan.messages.len(),
        plan.length.as_secs(),
        plan.weather.len(),
        settings.modes.name(),
        settings.seed,
        plan.length.as_secs(),
        plan.events.len(),
    )
}

pub fn outcome(
    settings: Settings,
    onemail: &Onemail,
    findings: &Findings,
    weather: &Tally,
    took: Duration,
) -> String {
    let mut text = format!(
        "  {}, seed {}, {:.0} s in all\n",
        settings.modes.name(),
        settings.seed,
        took.as_secs_f64()
    );
    for (what, number) in figures(onemail, findings, weather) {
        writeln!(text, "  {what:<42} {number:>8}").expect("a string grows");
    }
    text
}

fn figures(onemail: &Onemail, findings: &Findings, weather: &Tally) -> Vec<(String, usize)> {
    let emails = onemail.chronicle.emails();
    let seconds = &findings.second_emails;
    let inside = |way: Way| {
        seconds
            .iter()
            .filter(|second| second.excuse == Ok(way))
            .count()
    };
    let outside = seconds
        .iter()
        .filter(|second| second.excuse.is_err())
        .count();
    let of = |tally: &Tally, what: &str| tally.of(what) as usize;
    let workers = |what: &str| of(&onemail.tally, what);
    let victims = |what: &str| of(&onemail.victims.tally, what);
    let strikes = |what: &str| of(&onemail.strikes, what);
    let weather = |what: &str| of(weather, what);
    let figures = [
        ("events", onemail.plan.events.len()),
        ("messages", onemail.plan.messages.len()),
        ("deliveries", onemail.events.deliveries()),
        ("emails", emails.values().map(Vec::len).sum()),
        ("duplicates skipped", workers("notify duplicate")),
        ("lost", findings.lost.len()),
        ("dead-lettered", onemail.events.dead_letters().len()),
        (
            "  of those, wrongly or not though due",
            findings.letters.len(),
        ),
        ("second emails", seconds.len()),
        ("  in the gap: worker died", inside(Way::WorkerDied)),
        ("  in the gap: SES's reply lost", inside(Way::ReplyLost)),
        ("  in the gap: claim lost", inside(Way::ClaimLost)),
        ("  outside the gap", outside),
        (
            "  lines of feedback that tell of one",
            workers("feedback second_email"),
        ),
        ("held and unsent", findings.held.len()),
        (
            "  held, and completed by SES's word",
            findings.held_then_sent.len(),
        ),
        ("sending, with a dead letter", findings.left_sending.len()),
        ("stuck claims", findings.stuck.len()),
        (
            "claims completed by SES's word",
            workers("feedback settled"),
        ),
        ("payloads hidden by SES's word", findings.hidden_payloads),
        ("workers killed", victims("kills")),
        ("workers stopped until their deadline", victims("stops")),
        ("deadlines passed", workers("deadlines passed")),
        ("Postgres restarts", weather("restarts")),
        ("cuts of all connections at once", weather("cuts")),
        ("connections cut", strikes("cut")),
        ("connections silenced", strikes("silenced")),
        ("keys held by a neighbour", weather("keys held")),
        ("tables locked by a neighbour", weather("tables locked")),
        ("notifications of emails", workers("notifications")),
        ("  late", workers("late notifications")),
        ("  repeated", workers("repeated notifications")),
    ];
    let of_ses = onemail.ses_tally.all().into_iter();
    let of_ses = of_ses.map(|(what, count)| (format!("SES: {what}"), count as usize));
    figures
        .map(|(what, number)| (what.to_owned(), number))
        .into_iter()
        .chain(of_ses)
        .collect()
}

/// In Markdown, as it stands in `docs/proof.md`.
pub fn comparison(findings: &Findings, trials: &[Trial]) -> String {
    let mut text = String::from("| design | lost | second emails |\n| --- | ---: | ---: |\n");
    let onemail = ("onemail", findings.lost.len(), findings.second_emails.len());
    let others = trials
        .iter()
        .map(|trial| (trial.design.name(), trial.lost(), trial.second_emails()));
    for (design, lost, seconds) in std::iter::once(onemail).chain(others) {
        writeln!(text, "| {design} | {lost} | {seconds} |").expect("a string grows");
    }
    text
}
