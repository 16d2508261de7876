//! How a case ended, with all that must be true of every case.

use crate::support::lambda::Sandbox;

use super::{InDoubt, Stage, Word};

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub emails: usize,
    /// By the ledger. `nobody` where it has no row, or one that is sending for ever; `held` where it says that nobody
    /// knows.
    pub settled_by: String,
}

impl Ending {
    pub fn of(emails: usize, settled_by: &str) -> Self {
        Self {
            emails,
            settled_by: settled_by.to_owned(),
        }
    }

    pub fn one_email(settled_by: &str) -> Self {
        Self::of(1, settled_by)
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
        let endings = self.event_ids.iter().map(|event_id| {
            let emails = emails.iter().filter(|email| email.event_id() == *event_id);
            let claim = claims.iter().find(|claim| claim.event_id == *event_id);
            let settled_by = match claim.map(|claim| claim.outcome.as_str()) {
                None | Some("sending") => "nobody",
                Some("unknown") => "held",
                Some("sent") => &claim.expect("it has an outcome").settled_by,
                Some(_) => panic!("{claim:?}"),
            };
            Ending::of(emails.count(), settled_by)
        });
        let endings: Vec<_> = endings.collect();
        let all = emails.len();
        let of_events: usize = endings.iter().map(|ending| ending.emails).sum();
        assert_eq!(of_events, all, "emails for no event");
        let (ending, others) = endings.split_first().expect("there is one event at least");
        for other in others {
            assert_eq!(*other, Ending::one_email("worker"), "another event");
        }
        self.assert_letters(ending);
        if self.setting.word != Word::Never {
            let told = self.database.told().await;
            assert_eq!(told.len(), 2 * all, "each kind is told once: {told:?}");
            let second = endings.iter().map(|ending| ending.emails.saturating_sub(1));
            assert_eq!(
                self.second_emails,
                second.sum::<usize>(),
                "second emails that the operator learns of"
            );
        }
        ending.clone()
    }

    /// What is held is to be seen in the dead-letter queue, also if SES tells of it in the end; nothing else is there.
    fn assert_letters(&self, ending: &Ending) {
        let letters = self.sqs.messages();
        for letter in &letters {
            let attributes = &letter["MessageAttributes"];
            assert_eq!(attributes["onemail_reason"]["StringValue"], "held");
            assert_eq!(attributes["onemail_event_id"]["StringValue"], super::EVENT);
        }
        let was_held = ending.settled_by == "held"
            || (self.setting.in_doubt, self.setting.word) == (InDoubt::Hold, Word::Late);
        assert_eq!(!letters.is_empty(), was_held, "{letters:?}");
    }

    pub(super) async fn count_second_emails(&mut self, feedback: &Sandbox) {
        feedback.kill().await;
        let lines = feedback.logs.to_the_end().await;
        let second = lines.iter().filter(|line| line.outcome() == "second_email");
        self.second_emails += second.count();
    }
}
