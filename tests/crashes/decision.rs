//! A worker has died under its lease after SES accepted, SES never tells, and the worker that comes to decide what
//! becomes of its row dies as well.

use crate::fate::Fate;
use crate::moment::{AtSes, Moment, UnderLease};
use crate::stage::{Ending, InDoubt, Mode, Setting, Stage, Word};
use crate::support::gate::Gate;
use crate::support::proxy::Then;
use crate::table::{Column, check};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    OnItsWay(Mode),
    MadeUnderALease,
    MadeInATransaction,
}

impl Decision {
    const ALL: [Self; 4] = [
        Self::OnItsWay(Mode::Lease),
        Self::MadeUnderALease,
        Self::OnItsWay(Mode::Transaction),
        Self::MadeInATransaction,
    ];

    fn name(self) -> String {
        let name = match self {
            Self::OnItsWay(Mode::Lease) => "in lease mode, before Postgres has its claim",
            Self::MadeUnderALease => "in lease mode, after Postgres commits, before it answers",
            Self::OnItsWay(Mode::Transaction) => {
                "in transaction mode, before Postgres has its claim"
            }
            Self::MadeInATransaction => "in transaction mode, before it commits",
        };
        name.to_owned()
    }

    /// Of the worker that decides.
    fn mode(self) -> Mode {
        match self {
            Self::OnItsWay(mode) => mode,
            Self::MadeUnderALease => Mode::Lease,
            Self::MadeInATransaction => Mode::Transaction,
        }
    }

    async fn run(self, setting: Setting) -> Ending {
        let mut stage = Stage::set(setting.then(self.mode())).await;
        let accepted = Moment::UnderLease(UnderLease::AtSes(AtSes::Accepted));
        let _first = accepted.reach(&mut stage).await;
        stage.crash().await;
        stage.wait_for_delivery().await;

        let never = Gate::closed();
        let (statement, then) = match (self, setting.in_doubt) {
            (Self::OnItsWay(_), _) => ("INSERT INTO processed_events", Then::Hold(never)),
            (Self::MadeUnderALease, _) => {
                ("INSERT INTO processed_events", Then::HoldReplies(never))
            }
            (Self::MadeInATransaction, InDoubt::Resend) => (
                "SET processed_at = clock_timestamp()",
                Then::HoldReplies(never),
            ),
            (Self::MadeInATransaction, InDoubt::Hold) => {
                ("SET outcome = 'unknown'", Then::HoldReplies(never))
            }
        };
        let happening = stage.postgres.at(statement, then);
        let _second = stage.begin().await;
        happening.happened().await;
        if self == Self::MadeUnderALease {
            let decided = "SELECT count(*) FROM processed_events \
                            WHERE outcome = 'unknown' OR lease_until > clock_timestamp()";
            stage.database.until("the decision", decided, 1).await;
        }
        stage.crash().await;
        stage.database.transactions_over().await;
        stage.play_on().await;
        stage.ending().await
    }
}

#[tokio::test]
async fn a_crash_of_whoever_decides_over_a_row_in_doubt_changes_nothing_of_what_is_decided() {
    let column = |heading, in_doubt| Column {
        heading,
        settings: vec![Setting::lease(in_doubt, Word::Never)],
    };
    check(
        "whoever comes to a row in doubt is killed too",
        &[
            column("`resend`", InDoubt::Resend),
            column("`hold`", InDoubt::Hold),
        ],
        Decision::ALL.to_vec(),
        Decision::name,
        |_, setting| Fate::Gap.ending(setting),
        Decision::run,
    )
    .await;
}
