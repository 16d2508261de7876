//! Each step of the worker at which it can be stopped, and how to bring it there.

use crate::road;
use crate::stage::{Invocation, Stage};
use crate::support::gate::Gate;
use crate::support::proxy::Then;
use crate::support::ses::Reply;

/// How far the worker has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Connecting,
    ClaimOnItsWay,
    Claimed,
    RequestHalfSent,
    RequestArrived,
    Accepted,
    ReplyArrived,
    SettlementOnItsWay,
    CommitOnItsWay,
    Committed,
    CommitAnswered,
    Answered,
    WritingTheClaimAgain,
    MarkingTheDoubt,
    DoubtMarked,
}

impl Moment {
    pub const ALL: [Self; 15] = [
        Self::Connecting,
        Self::ClaimOnItsWay,
        Self::Claimed,
        Self::RequestHalfSent,
        Self::RequestArrived,
        Self::Accepted,
        Self::ReplyArrived,
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
            Self::RequestHalfSent => "with the request to SES half sent",
            Self::RequestArrived => "after SES has the whole request, before it accepts",
            Self::Accepted => "after SES accepts, before its reply",
            Self::ReplyArrived => "after SES's reply, before the settlement is sent",
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

    /// Whether SES has accepted and Postgres has not committed.
    pub fn is_in_the_gap(self) -> bool {
        matches!(
            self,
            Self::Accepted
                | Self::ReplyArrived
                | Self::SettlementOnItsWay
                | Self::CommitOnItsWay
                | Self::WritingTheClaimAgain
                | Self::MarkingTheDoubt
                | Self::DoubtMarked
        )
    }

    /// Begins the invocation, and comes back when the worker is there.
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
            Self::RequestHalfSent => {
                let stopped = stage.road.stop_half_way(road::Then::Hold);
                let running = stage.begin().await;
                stopped.pass().await;
                running
            }
            Self::RequestArrived => {
                let undecided = Reply::accept().after(&never).not_accepted();
                stage.ses.reply_next(undecided);
                let running = stage.begin().await;
                stage.ses.received(1).await;
                running
            }
            Self::Accepted => {
                stage.ses.reply_next(Reply::accept().after(&never));
                let running = stage.begin().await;
                stage.ses.received(1).await;
                running
            }
            Self::ReplyArrived => {
                let gate = Gate::closed();
                stage.ses.reply_next(Reply::accept().after(&gate));
                let running = stage.begin().await;
                stage.ses.received(1).await;
                stage.worker().await.freeze();
                gate.open();
                stage.road.answered().await;
                running
            }
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

/// Waits until Postgres has committed a claim.
pub async fn committed(stage: &Stage) {
    let count = "SELECT count(*) FROM processed_events";
    stage.database.until("the commit", count, 1).await;
}
