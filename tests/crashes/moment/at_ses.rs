//! The steps at SES, which are the same in both modes.

use crate::road;
use crate::stage::{Invocation, Stage};
use crate::support::gate::Gate;
use crate::support::patience::within_reason;
use crate::support::ses::Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtSes {
    RequestHalfSent,
    RequestArrived,
    Accepted,
    ReplyArrived,
}

impl AtSes {
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestHalfSent => "with the request to SES half sent",
            Self::RequestArrived => "after SES has the whole request, before it accepts",
            Self::Accepted => "after SES accepts, before its reply",
            Self::ReplyArrived => "after SES's reply, before the settlement is sent",
        }
    }

    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted | Self::ReplyArrived)
    }

    pub async fn reach(self, stage: &mut Stage) -> Invocation {
        let never = Gate::closed();
        match self {
            Self::RequestHalfSent => {
                let stopped = stage.road.stop_half_way(road::Then::Hold);
                let running = stage.begin().await;
                within_reason("half of a request to SES", stopped.pass()).await;
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
        }
    }
}
