//! The worker has died after SES accepted, and `feedback`, on which all now depends, dies too or loses its connection.

use crate::fate::Fate;
use crate::stage::{Ending, InDoubt, Setting, Stage, Word};
use crate::support::gate::Gate;
use crate::support::proxy::Then;
use crate::support::ses::Reply;
use crate::table::{Column, check};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deafness {
    BeforeItsTransaction,
    BeforeTheClaim,
    BeforeTheCommit,
    AfterTheCommit,
    BeforeTheDelete,
    ConnectionBreaksBeforeTheCommit,
    ConnectionBreaksAfterTheCommit,
    SilenceBeforeTheCommit,
}

/// How far `feedback` gets.
enum Until {
    /// It is killed when this has happened.
    Killed(&'static str, Then),
    /// It lives on.
    Lives(&'static str, Then),
    /// It answers, and the answer is lost.
    Answers,
}

impl Deafness {
    const ALL: [Self; 8] = [
        Self::BeforeItsTransaction,
        Self::BeforeTheClaim,
        Self::BeforeTheCommit,
        Self::AfterTheCommit,
        Self::BeforeTheDelete,
        Self::ConnectionBreaksBeforeTheCommit,
        Self::ConnectionBreaksAfterTheCommit,
        Self::SilenceBeforeTheCommit,
    ];

    fn name(self) -> String {
        let name = match self {
            Self::BeforeItsTransaction => "killed before its transaction",
            Self::BeforeTheClaim => "killed before Postgres has the claim",
            Self::BeforeTheCommit => "killed before Postgres has the commit",
            Self::AfterTheCommit => "killed after Postgres commits, before it answers",
            Self::BeforeTheDelete => "killed after its answer to Lambda, before the delete",
            Self::ConnectionBreaksBeforeTheCommit => "its connection breaks before the commit",
            Self::ConnectionBreaksAfterTheCommit => "its connection breaks after the commit",
            Self::SilenceBeforeTheCommit => "silence before the commit",
        };
        name.to_owned()
    }

    fn until(self) -> Until {
        let never = Gate::closed();
        match self {
            Self::BeforeItsTransaction => Until::Killed("user", Then::Hold(never)),
            Self::BeforeTheClaim => {
                Until::Killed("INSERT INTO processed_events", Then::Hold(never))
            }
            Self::BeforeTheCommit => Until::Killed("COMMIT", Then::Hold(never)),
            Self::AfterTheCommit => Until::Killed("COMMIT", Then::SwallowReplies),
            Self::BeforeTheDelete => Until::Answers,
            Self::ConnectionBreaksBeforeTheCommit => Until::Lives("COMMIT", Then::Cut),
            Self::ConnectionBreaksAfterTheCommit => Until::Lives("COMMIT", Then::CutReplies),
            Self::SilenceBeforeTheCommit => Until::Lives("COMMIT", Then::Swallow),
        }
    }

    async fn run(self, setting: Setting) -> Ending {
        let mut stage = Stage::set(setting).await;
        stage.ses.reply_next(Reply::accept().after(&Gate::closed()));
        let _running = stage.begin().await;
        stage.ses.received(1).await;
        stage.crash().await;
        stage.database.transactions_over().await;
        self.strike(&mut stage).await;
        stage.play_on().await;
        stage.ending().await
    }

    async fn strike(self, stage: &mut Stage) {
        match self.until() {
            Until::Killed(statement, then) => {
                let happening = stage.postgres_of_feedback.at(statement, then);
                let _hearing = stage.begin_hearing().await;
                happening.happened().await;
                stage.crash_of_feedback().await;
            }
            Until::Lives(statement, then) => {
                let happening = stage.postgres_of_feedback.at(statement, then);
                let hearing = stage.begin_hearing().await;
                happening.happened().await;
                stage.end_hearing(hearing).await;
            }
            Until::Answers => {
                let hearing = stage.begin_hearing().await;
                stage.lose_answer_of_feedback(hearing).await;
                stage.crash_of_feedback().await;
            }
        }
    }
}

#[tokio::test]
async fn a_crash_of_feedback_after_a_crash_of_the_worker_is_still_one_email() {
    let column = |heading, setting| Column {
        heading,
        settings: vec![setting],
    };
    check(
        "`feedback`, after the worker was killed between acceptance and commit",
        &[
            column("transaction mode", Setting::transaction(Word::InTime)),
            // What `resend` would do comes after the wait, as here.
            column("lease mode", Setting::lease(InDoubt::Hold, Word::InTime)),
        ],
        Deafness::ALL.to_vec(),
        Deafness::name,
        |_, setting| Fate::Gap.ending(setting),
        Deafness::run,
    )
    .await;
}
