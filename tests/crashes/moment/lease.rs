//! The steps in lease mode: claim, look up, send and settle are each committed by themselves.

use crate::fate::Fate;
use crate::stage::{Invocation, Stage};
use crate::support::gate::Gate;
use crate::support::proxy::Then;
use crate::support::ses::Reply;

use super::{AtSes, committed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnderLease {
    Connecting,
    ClaimOnItsWay,
    Claimed,
    ClaimAnswered,
    LookingUp,
    AtSes(AtSes),
    SettlementOnItsWay,
    SettlingAgain,
    Settled,
    SettlementAnswered,
    Answered,
    ReleaseOnItsWay,
    Released,
    DoubtOnItsWay,
    DoubtWritten,
}

/// In the statements that write what became of a row, and in none else.
const SETTLE: &str = "settled.outcome";
const RELEASE: &str = "DELETE FROM processed_events";
const LEAVE_IN_DOUBT: &str = "SET lease_until = clock_timestamp()";

impl UnderLease {
    pub const ALL: [Self; 18] = [
        Self::Connecting,
        Self::ClaimOnItsWay,
        Self::Claimed,
        Self::ClaimAnswered,
        Self::LookingUp,
        Self::AtSes(AtSes::RequestHalfSent),
        Self::AtSes(AtSes::RequestArrived),
        Self::AtSes(AtSes::Accepted),
        Self::AtSes(AtSes::ReplyArrived),
        Self::SettlementOnItsWay,
        Self::SettlingAgain,
        Self::Settled,
        Self::SettlementAnswered,
        Self::Answered,
        Self::ReleaseOnItsWay,
        Self::Released,
        Self::DoubtOnItsWay,
        Self::DoubtWritten,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Connecting => "before the claim is sent",
            Self::ClaimOnItsWay => "after the claim is sent, before Postgres has it",
            Self::Claimed => "after Postgres commits the claim, before it answers",
            Self::ClaimAnswered => "after the claim is answered, before the look-up",
            Self::LookingUp => "with the look-up of the recipient under way",
            Self::AtSes(moment) => moment.name(),
            Self::SettlementOnItsWay => "after the settlement is sent, before Postgres has it",
            Self::SettlingAgain => "after a lost settlement, before it is written again",
            Self::Settled => "after Postgres commits the settlement, before it answers",
            Self::SettlementAnswered => "after Postgres's answer, before the answer to Lambda",
            Self::Answered => "after the answer to Lambda, before the delete",
            Self::ReleaseOnItsWay => "after SES has throttled, before Postgres has the release",
            Self::Released => "after Postgres commits the release, before it answers",
            Self::DoubtOnItsWay => "after a lost reply of SES, before Postgres has the doubt",
            Self::DoubtWritten => "after Postgres commits the doubt, before it answers",
        }
    }

    pub fn fate(self) -> Fate {
        match self {
            Self::Connecting
            | Self::ClaimOnItsWay
            | Self::Settled
            | Self::SettlementAnswered
            | Self::Answered
            | Self::Released => Fate::Safe,
            Self::Claimed | Self::ClaimAnswered | Self::LookingUp | Self::ReleaseOnItsWay => {
                Fate::Unsent
            }
            Self::AtSes(moment) if !moment.is_accepted() => Fate::Unsent,
            Self::AtSes(_)
            | Self::SettlementOnItsWay
            | Self::SettlingAgain
            | Self::DoubtOnItsWay
            | Self::DoubtWritten => Fate::Gap,
        }
    }

    pub async fn reach(self, stage: &mut Stage) -> Invocation {
        let never = Gate::closed();
        match self {
            Self::Connecting => stopped(stage, "user", Then::Hold(never)).await,
            Self::ClaimOnItsWay => {
                stopped(stage, "INSERT INTO processed_events", Then::Hold(never)).await
            }
            Self::Claimed => {
                let claim = "INSERT INTO processed_events";
                let running = stopped(stage, claim, Then::HoldReplies(never)).await;
                let count = "SELECT count(*) FROM processed_events WHERE outcome = 'sending'";
                stage.database.until("the claim", count, 1).await;
                running
            }
            Self::ClaimAnswered => {
                stopped(stage, "READ COMMITTED READ ONLY", Then::Hold(never)).await
            }
            Self::LookingUp => stopped(stage, "jobs_application", Then::HoldReplies(never)).await,
            Self::AtSes(moment) => moment.reach(stage).await,
            Self::SettlementOnItsWay => stopped(stage, SETTLE, Then::Hold(never)).await,
            Self::SettlingAgain => {
                let lost = stage.postgres.at(SETTLE, Then::Cut);
                let again = stage.postgres.at(SETTLE, Then::Hold(never));
                let running = stage.begin().await;
                lost.happened().await;
                again.happened().await;
                running
            }
            Self::Settled => {
                let running = stopped(stage, SETTLE, Then::HoldReplies(never)).await;
                committed(stage).await;
                running
            }
            Self::SettlementAnswered => {
                let gate = Gate::closed();
                let running = stopped(stage, SETTLE, Then::HoldReplies(gate.clone())).await;
                stage.worker().await.freeze();
                gate.open();
                committed(stage).await;
                running
            }
            Self::Answered => unreachable!("it ends the invocation"),
            Self::ReleaseOnItsWay => {
                throttle(stage);
                stopped(stage, RELEASE, Then::Hold(never)).await
            }
            Self::Released => {
                throttle(stage);
                let running = stopped(stage, RELEASE, Then::HoldReplies(never)).await;
                let count = "SELECT count(*) FROM processed_events";
                stage.database.until("the release", count, 0).await;
                running
            }
            Self::DoubtOnItsWay => {
                stage.ses.reply_next(Reply::accept_without_reply());
                stopped(stage, LEAVE_IN_DOUBT, Then::Hold(never)).await
            }
            Self::DoubtWritten => {
                stage.ses.reply_next(Reply::accept_without_reply());
                let running = stopped(stage, LEAVE_IN_DOUBT, Then::HoldReplies(never)).await;
                let count = "SELECT count(*) FROM processed_events \
                              WHERE outcome = 'sending' AND lease_until <= clock_timestamp()";
                stage.database.until("the doubt", count, 1).await;
                running
            }
        }
    }
}

/// Begins, and comes back when this has happened to the first message with this text.
async fn stopped(stage: &mut Stage, text: &str, then: Then) -> Invocation {
    let stopped = stage.postgres.at(text, then);
    let running = stage.begin().await;
    stopped.happened().await;
    running
}

/// For as often as a worker tries within one invocation.
pub fn throttle(stage: &Stage) {
    for _ in 0..3 {
        let throttled = Reply::refuse(429, "TooManyRequestsException", "Slow down.");
        stage.ses.reply_next(throttled);
    }
}
