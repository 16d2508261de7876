//! A claimed event and its row become an email, and SES gets it: the same in both modes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use crate::claim::Row;
use crate::compose::{Destination, Email, Recipient, compose, destination};
use crate::receive::Event;
use crate::send::{Cause, SendVerdict, SesMessageId};

use super::line::Line;
use super::outcome::{Outcome, Refusal, Release};
use super::{Invocation, budget};

/// What it came to; the claim is to be settled accordingly.
#[derive(Debug)]
pub(super) enum Dispatched {
    /// SES has the email.
    Sent(SesMessageId),
    /// There is nobody to write to any more.
    Skipped,
    /// This recipient may not be written to.
    Withheld,
    /// SES certainly does not have it, for this reason.
    NotSent(Outcome),
    /// Nobody knows whether SES has it.
    Unknown(Cause),
}

impl Dispatched {
    /// What the record comes to, once the claim is settled.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Sent(id) => Outcome::Sent(id.clone()),
            Self::Skipped => Outcome::Skipped,
            Self::Withheld => Outcome::Withheld,
            Self::NotSent(outcome) => outcome.clone(),
            Self::Unknown(cause) => Outcome::Unknown(cause.clone()),
        }
    }
}

impl Invocation<'_> {
    /// Calls `on_accepted` at the moment from which nothing may fail the record.
    pub(super) async fn dispatch(
        &self,
        event: &Event<'_>,
        rows: &[Row],
        line: &mut Line,
        claim_holds: impl Fn() -> bool,
        on_accepted: impl FnOnce(),
    ) -> Dispatched {
        // A fault of ours that one record brings to light must not touch its neighbours.
        let email = match catch_unwind(AssertUnwindSafe(|| self.email(event, rows, line))) {
            Ok(Ok(email)) => email,
            Ok(Err(dispatched)) => return dispatched,
            Err(_) => return released(Release::Panicked),
        };
        let Some(timeout) = budget::send_timeout(self.deadline) else {
            return released(Release::NoTime);
        };
        let sent = AssertUnwindSafe(self.sender.send(&email, timeout, claim_holds)).catch_unwind();
        match sent.await {
            Ok(SendVerdict::Accepted(id)) => {
                on_accepted();
                line.accepted(&id);
                Dispatched::Sent(id)
            }
            Ok(SendVerdict::ClaimLost) => released(Release::Database(Cause::new(
                "claim_lost",
                "the connection that held the claim was lost before the email was sent",
            ))),
            Ok(SendVerdict::NotSent(cause)) => released(Release::Ses(cause)),
            Ok(SendVerdict::NotSentOurs(cause)) => released(Release::SesSetup(cause)),
            Ok(SendVerdict::Refused(cause)) => refused(Refusal::Message(cause)),
            Ok(SendVerdict::Unknown(cause)) => Dispatched::Unknown(cause),
            Err(_) => Dispatched::Unknown(Cause::new("panic", "its sending panicked")),
        }
    }

    /// The email of the event, or why there is none.
    fn email(&self, event: &Event<'_>, rows: &[Row], line: &mut Line) -> Result<Email, Dispatched> {
        let notifier = self.notifier;
        let row = match rows {
            [row] => row,
            [] => return Err(Dispatched::Skipped),
            _ => {
                let problem = "recipient.sql returned more than one row".to_owned();
                return Err(released(Release::Folder(problem)));
            }
        };
        line.tell(event.folder.safe_columns(row));
        let recipient = Recipient::of_row(row)
            .map_err(|problem| refused(Refusal::Recipient(problem.to_string())))?;
        let to = match destination(recipient, &notifier.recipients) {
            Destination::Recipient(mailbox) => mailbox,
            Destination::Redirected(mailbox) => {
                line.redirected();
                mailbox
            }
            Destination::Withheld => return Err(Dispatched::Withheld),
        };
        compose(&notifier.catalogue, &notifier.mail, event, row, to)
            .map_err(|error| released(Release::Folder(error.to_string())))
    }
}

fn released(release: Release) -> Dispatched {
    Dispatched::NotSent(Outcome::Released(release))
}

fn refused(refusal: Refusal) -> Dispatched {
    Dispatched::NotSent(Outcome::Refused(refusal))
}
