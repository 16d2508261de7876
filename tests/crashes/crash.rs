//! `kill -9` at every step of the worker, and of the machine under it.

use crate::moment::{Moment, committed};
use crate::stage::{EVENT, Ending, Stage, Word};
use crate::support::gate::Gate;
use crate::support::proxy::End;
use crate::support::ses::Reply;
use crate::table::{Expected, check};

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
    fn all() -> Vec<Self> {
        let processes = Moment::ALL.map(|moment| Self(moment, Of::Process));
        // Where a transaction is open, which Postgres then keeps until it has had enough.
        let machines = [
            Moment::Claimed,
            Moment::RequestArrived,
            Moment::Accepted,
            Moment::ReplyArrived,
            Moment::SettlementOnItsWay,
            Moment::CommitOnItsWay,
        ];
        let machines = machines.map(|moment| Self(moment, Of::Machine));
        processes.into_iter().chain(machines).collect()
    }

    fn name(self) -> String {
        let Self(moment, of) = self;
        match of {
            Of::Process => moment.name().to_owned(),
            Of::Machine => format!("{}, and the machine is gone", moment.name()),
        }
    }

    fn expected(self) -> Expected {
        if self.0.is_in_the_gap() {
            Expected::GAP
        } else {
            Expected::SAFE
        }
    }

    /// The worker comes to the moment, and is no more.
    async fn strike(self, stage: &mut Stage) {
        let Self(moment, of) = self;
        if moment == Moment::Answered {
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

    async fn run(self, word: Word) -> Ending {
        let mut stage = Stage::set(word).await;
        self.strike(&mut stage).await;
        stage.play_on().await;
        stage.ending().await
    }
}

/// The figures are those of `docs/guarantee.md`.
#[tokio::test]
async fn a_crash_at_any_step_is_one_email_and_without_ses_word_two_if_it_is_between_acceptance_and_commit()
 {
    check(
        "the worker is killed",
        Crash::all(),
        Crash::name,
        Crash::expected,
        Crash::run,
    )
    .await;
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_batch_is_one_email_for_each_of_its_events() {
    let mut stage = Stage::set(Word::InTime).await;
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

    assert_eq!(stage.ending().await, Ending::one_email("ses"));
}

/// The one gap that is left. [`Stage::ending`] sees that it is measured: one ERROR line for the second email.
#[tokio::test]
async fn a_crash_between_acceptance_and_commit_with_ses_word_too_late_is_a_second_email_that_is_told_of()
 {
    for moment in Moment::ALL {
        if moment.is_in_the_gap() {
            let ending = Crash(moment, Of::Process).run(Word::Late).await;
            let expected = Ending {
                emails: 2,
                settled_by: "worker".to_owned(),
            };
            assert_eq!(ending, expected, "{}", moment.name());
        }
    }
}
