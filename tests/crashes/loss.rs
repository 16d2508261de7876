//! Nobody crashes, but a request, a reply or a connection is lost, at each step of the worker.

use crate::fate::{self, Fate};
use crate::moment::throttle;
use crate::road;
use crate::stage::{Ending, Setting, Stage};
use crate::support::gate::Gate;
use crate::support::proxy::{End, Then};
use crate::support::ses::Reply;
use crate::table::check;

/// What is lost between the worker and Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// The connection is reset before Postgres has the statement.
    Request,
    /// The connection is reset after Postgres has done it.
    Reply,
    /// Neither the statement nor anything after it arrives, and nobody is told.
    RequestSilently,
    /// Postgres has done it, and nothing of it or after it arrives; nobody is told.
    ReplySilently,
}

#[derive(Clone, Copy, Debug)]
struct AtPostgres {
    statement: &'static str,
    step: &'static str,
    lost: Lost,
}

type Step = (&'static str, &'static str);

const IN_TRANSACTION: [Step; 6] = [
    ("user", "the startup message"),
    ("BEGIN", "begun the transaction"),
    ("INSERT INTO processed_events", "claimed the event"),
    ("jobs_application", "looked up the recipient"),
    ("UPDATE processed_events", "settled the claim"),
    ("COMMIT", "committed"),
];

const UNDER_LEASE: [Step; 5] = [
    ("user", "the startup message"),
    ("INSERT INTO processed_events", "claimed the event"),
    ("READ COMMITTED READ ONLY", "begun the look-up"),
    ("jobs_application", "looked up the recipient"),
    ("settled.outcome", "settled the claim"),
];

impl AtPostgres {
    fn all(steps: &[Step]) -> Vec<Self> {
        let losses = [
            Lost::Request,
            Lost::Reply,
            Lost::RequestSilently,
            Lost::ReplySilently,
        ];
        let cases = steps.iter().flat_map(|(statement, step)| {
            losses.map(|lost| Self {
                statement,
                step,
                lost,
            })
        });
        // Opening a connection ends no round trip of its own.
        cases
            .filter(|case| {
                case.statement != "user"
                    || matches!(case.lost, Lost::Request | Lost::RequestSilently)
            })
            .collect()
    }

    fn name(self) -> String {
        let lost = match self.lost {
            Lost::Request => "the connection breaks before",
            Lost::Reply => "the connection breaks after",
            Lost::RequestSilently => "silence before",
            Lost::ReplySilently => "silence after",
        };
        format!("{lost} Postgres has {}", self.step)
    }

    fn then(self) -> Then {
        match self.lost {
            Lost::Request => Then::Cut,
            Lost::Reply => Then::CutReplies,
            Lost::RequestSilently => Then::Swallow,
            Lost::ReplySilently => Then::SwallowReplies,
        }
    }

    /// After SES has accepted, the lost transaction may still hold the key, until Postgres ends it.
    fn holds_up_the_next_connection(self) -> bool {
        match self.statement {
            "UPDATE processed_events" => {
                matches!(self.lost, Lost::RequestSilently | Lost::ReplySilently)
            }
            "COMMIT" => self.lost == Lost::RequestSilently,
            _ => false,
        }
    }

    async fn run(self, setting: Setting) -> Ending {
        let mut stage = Stage::set(setting).await;
        let lost = stage.postgres.at(self.statement, self.then());
        let running = match self.lost {
            Lost::Request | Lost::Reply => stage.begin().await,
            Lost::RequestSilently | Lost::ReplySilently => stage.begin_in_a_hurry().await,
        };
        lost.happened().await;
        if self.holds_up_the_next_connection() {
            stage.database.sessions_blocked(1).await;
            stage.database.end_open_transactions().await;
        }
        stage.end(running).await;
        stage.play_on().await;
        stage.ending().await
    }
}

/// The worker is alive and knows that the email left: it writes the claim again.
#[tokio::test]
async fn whatever_is_lost_between_the_worker_and_postgres_is_one_email_with_and_without_ses_word() {
    check(
        "between worker and Postgres, in transaction mode",
        &fate::in_transactions(),
        AtPostgres::all(&IN_TRANSACTION),
        AtPostgres::name,
        |_, setting| Fate::Safe.ending(setting),
        AtPostgres::run,
    )
    .await;
}

/// And no claim is left that somebody would have to decide over.
#[tokio::test]
async fn whatever_is_lost_between_a_worker_under_a_lease_and_postgres_is_one_email_and_nothing_in_doubt()
 {
    check(
        "between worker and Postgres, in lease mode",
        &fate::whatever_is_said_under_leases(),
        AtPostgres::all(&UNDER_LEASE),
        AtPostgres::name,
        |_, setting| Fate::Safe.ending(setting),
        AtPostgres::run,
    )
    .await;
}

/// What is lost between the worker and SES, or Lambda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elsewhere {
    HalfOfTheRequest,
    RequestUnaccepted,
    Throttled,
    Reply,
    HalfOfTheReply,
    ReplySilently,
    FailedAfterAccepting,
    MessageId,
    AnswerToLambda,
    PostgresUntilTheDeadline,
}

impl Elsewhere {
    const ALL: [Self; 10] = [
        Self::HalfOfTheRequest,
        Self::RequestUnaccepted,
        Self::Throttled,
        Self::Reply,
        Self::HalfOfTheReply,
        Self::ReplySilently,
        Self::FailedAfterAccepting,
        Self::MessageId,
        Self::AnswerToLambda,
        Self::PostgresUntilTheDeadline,
    ];

    fn name(self) -> String {
        let name = match self {
            Self::HalfOfTheRequest => "the connection breaks with half of the request sent",
            Self::RequestUnaccepted => {
                "the connection breaks after the request, SES has not accepted"
            }
            Self::Throttled => "SES throttles, until the event is delivered again",
            Self::Reply => "the connection breaks after SES has accepted",
            Self::HalfOfTheReply => "the connection breaks in the middle of SES's reply",
            Self::ReplySilently => "SES has accepted and is silent until the deadline",
            Self::FailedAfterAccepting => "SES has accepted and answers 500",
            Self::MessageId => "SES has accepted and names no message id",
            Self::AnswerToLambda => "the answer to Lambda is lost",
            Self::PostgresUntilTheDeadline => {
                "SES has accepted and Postgres is away until the deadline"
            }
        };
        name.to_owned()
    }

    fn fate(self) -> Fate {
        match self {
            Self::Throttled | Self::AnswerToLambda => Fate::Safe,
            // Which the worker can't know: it may have.
            Self::HalfOfTheRequest | Self::RequestUnaccepted => Fate::Unsent,
            Self::Reply
            | Self::HalfOfTheReply
            | Self::ReplySilently
            | Self::FailedAfterAccepting
            | Self::MessageId => Fate::Gap,
            Self::PostgresUntilTheDeadline => Fate::Acknowledged,
        }
    }

    /// What SES makes of the first request.
    fn reply(self) -> Option<Reply> {
        match self {
            Self::RequestUnaccepted => Some(Reply::accept_without_reply().not_accepted()),
            Self::Reply => Some(Reply::accept_without_reply()),
            Self::HalfOfTheReply => Some(Reply::accept_with_half_a_reply()),
            Self::ReplySilently => Some(Reply::accept().after(&Gate::closed())),
            Self::FailedAfterAccepting => Some(Reply::accept_and_answer(500, "{}")),
            Self::MessageId => Some(Reply::accept_and_answer(200, "{}")),
            _ => None,
        }
    }

    async fn run(self, setting: Setting) -> Ending {
        let mut stage = Stage::set(setting).await;
        if let Some(reply) = self.reply() {
            stage.ses.reply_next(reply);
        }
        match self {
            Self::HalfOfTheRequest => {
                stage.road.stop_half_way(road::Then::Reset);
            }
            Self::Throttled => throttle(&stage),
            Self::AnswerToLambda => {
                let running = stage.begin().await;
                stage.lose_answer(running).await;
                stage.play_on().await;
                return stage.ending().await;
            }
            Self::PostgresUntilTheDeadline => return Self::without_postgres(stage).await,
            _ => {}
        }
        let running = match self {
            Self::ReplySilently => stage.begin_in_a_hurry().await,
            _ => stage.begin().await,
        };
        stage.end(running).await;
        stage.play_on().await;
        stage.ending().await
    }

    async fn without_postgres(mut stage: Stage) -> Ending {
        let gate = Gate::closed();
        stage.ses.reply_next(Reply::accept().after(&gate));
        let running = stage.begin_in_a_hurry().await;
        stage.ses.received(1).await;
        stage.postgres.refuse_connections().await;
        stage.postgres.end_connections(End::Reset).await;
        gate.open();
        stage.end(running).await;
        stage.postgres.take_connections().await;
        stage.play_on().await;
        stage.ending().await
    }
}

#[tokio::test]
async fn whatever_is_lost_between_the_worker_and_ses_or_lambda_is_one_email_while_ses_tells_of_it_in_time()
 {
    for (title, columns) in [
        (
            "between worker and SES or Lambda, in transaction mode",
            fate::in_transactions(),
        ),
        (
            "between worker and SES or Lambda, in lease mode",
            fate::under_leases(),
        ),
    ] {
        check(
            title,
            &columns,
            Elsewhere::ALL.to_vec(),
            Elsewhere::name,
            |case, setting| case.fate().ending(setting),
            Elsewhere::run,
        )
        .await;
    }
}
