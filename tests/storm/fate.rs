//! How SES deals with a request.

use std::time::Duration;

use fastrand::Rng;

use crate::dice::weighted;

#[derive(Clone, Copy, Debug)]
pub struct Fate {
    /// The email leaves, whatever becomes of the reply.
    pub accepted: bool,
    pub reply: Reply,
    /// The worker is killed.
    pub kill: Option<Kill>,
}

#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// The message id, after this time.
    MessageId(Duration),
    Error(u16, &'static str, &'static str),
    /// A success without a message id.
    NoMessageId,
    /// The connection is closed without a reply, or in the middle of it.
    Close,
    CutShort,
    /// Nothing ever comes.
    Silence,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kill {
    InsteadOfTheReply,
    RightAfterIt,
}

pub const THROTTLED: Reply = Reply::Error(
    429,
    "TooManyRequestsException",
    "Maximum sending rate exceeded.",
);
pub const UNAVAILABLE: Reply = Reply::Error(503, "ServiceUnavailable", "Service Unavailable");
pub const REFUSED: Reply = Reply::Error(400, "MessageRejected", "Email content is not acceptable.");

impl Fate {
    pub fn refused(reply: Reply) -> Self {
        Self {
            accepted: false,
            reply,
            kill: None,
        }
    }

    /// The usual: milliseconds, now and then a second or two.
    pub fn accepted(rng: &mut Rng) -> Self {
        let (least, most) = weighted(rng, &[(95, (5, 60)), (3, (100, 800)), (2, (1200, 2200))]);
        Self {
            accepted: true,
            reply: Reply::MessageId(Duration::from_millis(rng.u64(least..most))),
            kill: None,
        }
    }

    /// What SES can do to a request that it could well have sent.
    pub fn in_a_storm(rng: &mut Rng) -> Self {
        let lost = |reply| Self {
            accepted: true,
            reply,
            kill: None,
        };
        let killed = |accepted, kill| Self {
            accepted,
            reply: Reply::MessageId(Duration::from_millis(10)),
            kill: Some(kill),
        };
        let ours = |code, message| Self::refused(Reply::Error(400, code, message));
        let choices = [
            (500, THROTTLED_FATE),
            (100, ours("SendingPausedException", "Sending is paused.")),
            (
                100,
                ours("MailFromDomainNotVerifiedException", "Not verified."),
            ),
            (
                100,
                Self::refused(Reply::Error(403, "AccessDeniedException", "No.")),
            ),
            (150, Self::refused(UNAVAILABLE)),
            (
                150,
                Self::refused(Reply::Error(500, "InternalFailure", "No.")),
            ),
            (150, lost(Reply::Error(500, "InternalFailure", "No."))),
            (150, Self::refused(Reply::Close)),
            (250, lost(Reply::Close)),
            (100, lost(Reply::CutShort)),
            (100, lost(Reply::NoMessageId)),
            (60, Self::refused(Reply::Silence)),
            (60, lost(Reply::Silence)),
            (40, killed(false, Kill::InsteadOfTheReply)),
            (70, killed(true, Kill::InsteadOfTheReply)),
            (50, killed(true, Kill::RightAfterIt)),
        ];
        weighted(rng, &choices)
    }
}

const THROTTLED_FATE: Fate = Fate {
    accepted: false,
    reply: THROTTLED,
    kill: None,
};
