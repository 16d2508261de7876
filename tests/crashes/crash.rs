//! `kill -9` at every step of the worker, and of the machine under it.

use crate::fate::{self, Fate};
use crate::moment::{AtSes, InTransaction, Moment, UnderLease, committed};
use crate::stage::{EVENT, Ending, InDoubt, Mode, Setting, Stage, Word};
use crate::support::gate::Gate;
use crate::support::proxy::End;
use crate::support::ses::Reply;
use crate::table::check;

/// What ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The process: its kernel closes its connections.
    Process,
    /// The machine: its connections stay open and silent.
    Machine,
}

#[derive(Clone, Copy, Debug)]
struct Crash(Moment, Of);

impl Crash {
    fn all(mode: Mode) -> Vec<Self> {
        let processes = Moment::all(mode).into_iter();
        let processes = processes.map(|moment| Self(moment, Of::Process));
        let machines = match mode {
            // Where a transaction is open, which Postgres then keeps until it has had enough.
            Mode::Transaction => [
                InTransaction::Claimed,
                InTransaction::AtSes(AtSes::RequestArrived),
                InTransaction::AtSes(AtSes::Accepted),
                InTransaction::AtSes(AtSes::ReplyArrived),
                InTransaction::SettlementOnItsWay,
                InTransaction::CommitOnItsWay,
            ]
            .map(Moment::InTransaction)
            .to_vec(),
            // There is none but that of the look-up.
            Mode::Lease => vec![Moment::UnderLease(UnderLease::LookingUp)],
        };
        let machines = machines.into_iter().map(|moment| Self(moment, Of::Machine));
        processes.chain(machines).collect()
    }

    fn name(self) -> String {
        let Self(moment, of) = self;
        match of {
            Of::Process => moment.name().to_owned(),
            Of::Machine => format!("{}, and the machine is gone", moment.name()),
        }
    }

    fn must(self, setting: Setting) -> Ending {
        self.0.fate().ending(setting)
    }

    /// The worker comes to the moment, and is no more.
    async fn strike(self, stage: &mut Stage) {
        let Self(moment, of) = self;
        if moment.is_after_the_answer() {
            let running = stage.begin().await;
            stage.lose_answer(running).await;
            stage.crash().await;
            return;
        }
        let _running = moment.reach(stage).await;
        match of {
            Of::Process => {
                stage.crash().await;
                stage.database.transactions_over().await;
            }
            Of::Machine => {
                stage.postgres.end_connections(End::Silence).await;
                stage.crash().await;
            }
        }
    }

    async fn run(self, setting: Setting) -> Ending {
        let mut stage = Stage::set(setting).await;
        self.strike(&mut stage).await;
        stage.play_on().await;
        stage.ending().await
    }
}

/// The figures are those of `docs/proof.md`.
#[tokio::test]
async fn a_crash_at_any_step_is_one_email_and_without_ses_word_two_if_it_is_between_acceptance_and_commit()
 {
    check(
        "the worker is killed, in transaction mode",
        &fate::in_transactions(),
        Crash::all(Mode::Transaction),
        Crash::name,
        Crash::must,
        Crash::run,
    )
    .await;
}

/// As above. With `hold` an email is never sent a second time, and what was not sent is seen.
#[tokio::test]
async fn a_crash_under_a_lease_is_one_email_or_as_in_doubt_says_if_it_is_between_claim_and_settlement()
 {
    check(
        "the worker is killed, in lease mode",
        &fate::under_leases(),
        Crash::all(Mode::Lease),
        Crash::name,
        Crash::must,
        Crash::run,
    )
    .await;
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_batch_is_one_email_for_each_of_its_events() {
    for setting in [
        Setting::transaction(Word::InTime),
        Setting::lease(InDoubt::Resend, Word::InTime),
    ] {
        let mut stage = Stage::set(setting).await;
        stage.put("committed", 0);
        stage.put("unaccepted", 0);
        let never = Gate::closed();
        let accepted = Reply::accept().after(&never);
        stage.ses.reply_to_event(EVENT, accepted.clone());
        stage
            .ses
            .reply_to_event("unaccepted", accepted.not_accepted());

        let _batch = stage.begin().await;
        stage.ses.received(3).await;
        committed(&stage).await;
        stage.crash().await;
        stage.database.transactions_over().await;
        stage.play_on().await;

        assert_eq!(
            stage.ending().await,
            Ending::one_email("ses"),
            "{setting:?}"
        );
    }
}

/// The one gap that is left. [`Stage::ending`] sees that it is measured: one ERROR line for the second email. What is
/// held is one email, and settled by the word in the end.
#[tokio::test]
async fn a_crash_between_acceptance_and_commit_with_ses_word_too_late_is_a_second_email_that_is_told_of_or_held()
 {
    let settings = [
        Setting::transaction(Word::Late),
        Setting::lease(InDoubt::Resend, Word::Late),
        Setting::lease(InDoubt::Hold, Word::Late),
    ];
    let runs = settings.into_iter().flat_map(|setting| {
        let gap = Moment::all(setting.first).into_iter();
        let gap = gap.filter(|moment| moment.fate() == Fate::Gap);
        gap.map(move |moment| (Crash(moment, Of::Process), setting))
    });
    for (crash, setting) in runs {
        let ending = crash.run(setting).await;
        assert_eq!(ending, crash.must(setting), "{} {setting:?}", crash.name());
    }
}
