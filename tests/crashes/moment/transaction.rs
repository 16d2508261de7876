//! The steps in transaction mode: the claim is open until the email is sent.

use crate::fate::Fate;
use crate::stage::{Invocation, Stage};
use crate::support::gate::Gate;
use crate::support::proxy::Then;
use crate::support::ses::Reply;

use super::{AtSes, committed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTransaction {
    Connecting,
    ClaimOnItsWay,
    Claimed,
    AtSes(AtSes),
    SettlementOnItsWay,
    CommitOnItsWay,
    Committed,
    CommitAnswered,
    Answered,
    WritingTheClaimAgain,
    MarkingTheDoubt,
    DoubtMarked,
}

impl InTransaction {
    pub const ALL: [Self; 15] = [
        Self::Connecting,
        Self::ClaimOnItsWay,
        Self::Claimed,
        Self::AtSes(AtSes::RequestHalfSent),
        Self::AtSes(AtSes::RequestArrived),
        Self::AtSes(AtSes::Accepted),
        Self::AtSes(AtSes::ReplyArrived),
        Self::SettlementOnItsWay,
        Self::CommitOnItsWay,
        Self::Committed,
        Self::CommitAnswered,
        Self::Answered,
        Self::WritingTheClaimAgain,
        Self::MarkingTheDoubt,
        Self::DoubtMarked,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Connecting => "before the claim is sent",
            Self::ClaimOnItsWay => "after the claim is sent, before Postgres has it",
            Self::Claimed => "after Postgres has claimed, before it answers",
            Self::AtSes(moment) => moment.name(),
            Self::SettlementOnItsWay => "after the settlement is sent, before Postgres has it",
            Self::CommitOnItsWay => "after Postgres has the settlement, before it has the commit",
            Self::Committed => "after Postgres commits, before it answers",
            Self::CommitAnswered => "after Postgres's answer, before the answer to Lambda",
            Self::Answered => "after the answer to Lambda, before the delete",
            Self::WritingTheClaimAgain => "after a lost commit, before the claim is written again",
            Self::MarkingTheDoubt => "after a lost reply of SES, before the doubt is marked",
            Self::DoubtMarked => "after the doubt is marked, before the answer to Lambda",
        }
    }

    pub fn fate(self) -> Fate {
        match self {
            Self::AtSes(moment) if moment.is_accepted() => Fate::Gap,
            Self::SettlementOnItsWay
            | Self::CommitOnItsWay
            | Self::WritingTheClaimAgain
            | Self::MarkingTheDoubt
            | Self::DoubtMarked => Fate::Gap,
            _ => Fate::Safe,
        }
    }

    pub async fn reach(self, stage: &mut Stage) -> Invocation {
        let never = Gate::closed();
        match self {
            Self::Connecting => {
                let connecting = stage.postgres.at("user", Then::Hold(never));
                let running = stage.begin().await;
                connecting.happened().await;
                running
            }
            Self::ClaimOnItsWay => {
                let on_its_way = stage.postgres.at("BEGIN", Then::Hold(never));
                let running = stage.begin().await;
                on_its_way.happened().await;
                running
            }
            Self::Claimed => {
                let claim = "INSERT INTO processed_events";
                let sent = stage.postgres.at(claim, Then::HoldReplies(never));
                let running = stage.begin().await;
                sent.happened().await;
                // It has done all that it was asked.
                let open = "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user \
                            AND state = 'idle in transaction' AND query NOT LIKE 'BEGIN%'";
                stage.database.until("the claim", open, 1).await;
                running
            }
            Self::AtSes(moment) => moment.reach(stage).await,
            Self::SettlementOnItsWay => {
                let settlement = "UPDATE processed_events";
                let on_its_way = stage.postgres.at(settlement, Then::Hold(never));
                let running = stage.begin().await;
                on_its_way.happened().await;
                running
            }
            Self::CommitOnItsWay => {
                let on_its_way = stage.postgres.at("COMMIT", Then::Hold(never));
                let running = stage.begin().await;
                on_its_way.happened().await;
                running
            }
            Self::Committed => {
                let sent = stage.postgres.at("COMMIT", Then::HoldReplies(never));
                let running = stage.begin().await;
                sent.happened().await;
                committed(stage).await;
                running
            }
            Self::CommitAnswered => {
                let gate = Gate::closed();
                let sent = stage.postgres.at("COMMIT", Then::HoldReplies(gate.clone()));
                let running = stage.begin().await;
                sent.happened().await;
                stage.worker().await.freeze();
                gate.open();
                committed(stage).await;
                running
            }
            Self::WritingTheClaimAgain => {
                let lost = stage.postgres.at("COMMIT", Then::Cut);
                let again = stage.postgres.at("of_this_email", Then::Hold(never));
                let running = stage.begin().await;
                lost.happened().await;
                again.happened().await;
                running
            }
            Self::MarkingTheDoubt => {
                stage.ses.reply_next(Reply::accept_without_reply());
                let mark = "INSERT INTO sends_in_doubt";
                let on_its_way = stage.postgres.at(mark, Then::Hold(never));
                let running = stage.begin().await;
                on_its_way.happened().await;
                running
            }
            Self::DoubtMarked => {
                stage.ses.reply_next(Reply::accept_without_reply());
                let sent = stage.postgres.at("COMMIT", Then::HoldReplies(never));
                let running = stage.begin().await;
                sent.happened().await;
                let count = "SELECT count(*) FROM sends_in_doubt";
                stage.database.until("the mark", count, 1).await;
                running
            }
            Self::Answered => unreachable!("it ends the invocation"),
        }
    }
}
