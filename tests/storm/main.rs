//! The storm: the real binary in many processes, real Postgres, SES and SQS by their rules, and everything that can go
//! wrong going wrong, until the queues are empty. Then every email is counted.
//!
//! What happens comes from a seed (`plan.rs`); when it meets which worker is up to the machine. `make storm` runs it for
//! as long as asked, in each mode or in one.

mod chronicle;
mod designs;
mod dice;
mod fate;
mod findings;
mod jobboard;
mod modes;
mod notifications;
mod onemail;
mod plan;
mod postgres;
mod proxy;
mod queue;
mod report;
mod ses;
mod settings;
mod sky;
mod sqs_api;
mod storm;
mod tally;
mod victims;
mod workers;

#[path = "../it/support/mod.rs"]
#[expect(
    dead_code,
    reason = "the storm has stand-ins of its own, and needs a part of these"
)]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use designs::{Design, Trial};
use findings::Findings;
use modes::Modes;
use onemail::Onemail;
use plan::Plan;
use postgres::Postgres;
use settings::Settings;
use sky::Sky;
use tally::Tally;
use tokio::signal::unix::{SignalKind, signal};
use victims::Victims;

/// When the storm is over, what is left to do takes less than this, and as long as the storm itself.
const CALM: Duration = Duration::from_secs(120);

/// Each needs the machine for itself.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

mod transaction {
    /// The usual designs are in this one, since they have no mode.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_email_is_lost_and_a_second_one_leaves_only_in_the_stated_gap() {
        super::storm_over(super::Modes::Transaction, &super::Design::ALL).await;
    }
}

mod lease {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_email_is_lost_and_a_second_one_leaves_only_where_ses_word_came_after_the_wait() {
        super::storm_over(super::Modes::Lease, &[]).await;
    }
}

mod hold {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_second_email_leaves_and_what_is_not_sent_is_seen_as_held() {
        super::storm_over(super::Modes::Hold, &[]).await;
    }
}

mod mixed {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_email_is_lost_and_a_second_one_leaves_only_in_the_gap_of_its_first_one_s_mode() {
        super::storm_over(super::Modes::Mixed, &[]).await;
    }
}

async fn storm_over(modes: Modes, designs: &[Design]) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let settings = Settings::read(modes);
    let began = Instant::now();
    let plan = Arc::new(Plan::draw(settings));
    report::print(&report::forecast(settings, &plan));
    let sky = Arc::new(Sky::stormy());
    let postgres = Arc::new(Postgres::start().await);
    jobboard::create(&postgres, &plan).await;
    let mut trials = Vec::new();
    for design in designs {
        trials.push(Trial::start(*design, &plan, &sky, &postgres).await);
    }
    let mut onemail = Onemail::start(&plan, &sky, &postgres).await;
    tokio::spawn(leave_nobody_behind(onemail.victims.clone()));

    let start = Instant::now();
    onemail.begin(start);
    for trial in &trials {
        trial.begin(start);
    }
    let mut everybody = vec![onemail.victims.clone()];
    everybody.extend(trials.iter().map(|trial| trial.victims.clone()));
    let weather = Arc::new(Tally::default());
    let limit = 2 * plan.length + CALM;
    let all_done = async {
        storm::rage(&plan, start, &sky, &postgres, &everybody, &weather).await;
        report::progress(start, "the storm is over");
        onemail.done().await;
        report::progress(start, "the queues are empty");
        let emails = onemail.chronicle.emails();
        onemail.send_all_again();
        onemail.done().await;
        report::progress(start, "each event has come once more");
        for trial in &mut trials {
            trial.done().await;
        }
        emails
    };
    let Ok(emails) = tokio::time::timeout(limit, all_done).await else {
        panic!(
            "not done after {limit:?}; on the queues: {:?} {:?}",
            onemail.events.left(),
            onemail.notifications.left()
        );
    };
    onemail.close().await;

    let findings = Findings::gather(&onemail, &emails, &postgres).await;
    report::print(&report::outcome(
        settings,
        &onemail,
        &findings,
        &weather,
        began.elapsed(),
    ));
    if !trials.is_empty() {
        report::print(&report::comparison(&findings, &trials));
    }
    let mut complaints = findings.complaints(&onemail.chronicle);
    complaints.extend(trials.iter().filter_map(|trial| spared(trial, &findings)));
    drop((onemail, trials));
    let postgres = Arc::into_inner(postgres).expect("nobody else needs it any more");
    postgres.stop().await;
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// When we are interrupted. The server's keeper sees for itself that we are gone.
async fn leave_nobody_behind(victims: Arc<Victims>) {
    let caught = |kind| signal(kind).expect("a signal can be caught");
    let mut interrupt = caught(SignalKind::interrupt());
    let mut terminate = caught(SignalKind::terminate());
    let mut hangup = caught(SignalKind::hangup());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    victims.kill_all().await;
    std::process::exit(130);
}

/// A storm that a design comes through unharmed proves nothing of ours.
fn spared(trial: &Trial, findings: &Findings) -> Option<String> {
    let harmed = match trial.design {
        Design::ClaimFirst => trial.lost() > 0,
        Design::SendFirst | Design::CheckThenMark | Design::ExpiringLock => {
            trial.second_emails() > 0
        }
        Design::OneTransaction => trial.second_emails() > findings.second_emails.len(),
    };
    (!harmed).then(|| format!("the storm did no harm to {:?}", trial.design))
}
