//! How a case ended, with all that must be true of every case.

use crate::support::lambda::Sandbox;

use super::{Stage, Word};

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub emails: usize,
    /// By the ledger; `nobody` where it has no row.
    pub settled_by: String,
}

impl Ending {
    pub fn one_email(settled_by: &str) -> Self {
        Self {
            emails: 1,
            settled_by: settled_by.to_owned(),
        }
    }
}

impl Stage {
    /// How the event ended. Whatever is true of every case, and of every other event, is asserted here.
    pub async fn ending(mut self) -> Ending {
        if let Some(feedback) = self.feedback.take() {
            self.count_second_emails(&feedback).await;
        }
        let emails = self.ses.emails();
        let claims = self.database.claims().await;
        let mut endings = self.event_ids.iter().map(|event_id| {
            let emails = emails.iter().filter(|email| email.event_id() == *event_id);
            let claim = claims.iter().find(|claim| claim.event_id == *event_id);
            assert!(
                claim.is_none_or(|claim| claim.outcome == "sent"),
                "{claim:?}"
            );
            Ending {
                emails: emails.count(),
                settled_by: claim.map_or("nobody", |claim| &claim.settled_by).to_owned(),
            }
        });
        let ending = endings.next().expect("there is one event at least");
        let mut all = ending.emails;
        for other in endings {
            assert_eq!(other, Ending::one_email("worker"), "another event");
            all += 1;
        }
        assert_eq!(all, emails.len(), "emails for no event");
        if self.word != Word::Never {
            let told = self.database.told().await;
            assert_eq!(told.len(), 2 * all, "each kind is told once: {told:?}");
            assert_eq!(
                self.second_emails,
                all - self.event_ids.len(),
                "second emails that the operator learns of"
            );
        }
        ending
    }

    pub(super) async fn count_second_emails(&mut self, feedback: &Sandbox) {
        feedback.kill().await;
        let lines = feedback.logs.to_the_end().await;
        let second = lines.iter().filter(|line| line.outcome() == "second_email");
        self.second_emails += second.count();
    }
}
