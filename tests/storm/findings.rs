//! What the storm left behind, against what must be.

mod ledger;
mod letters;

use std::collections::HashMap;

use crate::chronicle::{Chronicle, SecondEmail};
use crate::onemail::Onemail;
use crate::plan::Plan;
use crate::postgres::Postgres;

/// The message ids of emails, by key.
pub type Emails = HashMap<String, Vec<String>>;

/// Of each kind, those that are wrong, in words; empty lists are what is wanted.
#[derive(Default)]
pub struct Findings {
    /// Keys of events that can be sent, and no email left.
    pub lost: Vec<String>,
    pub second_emails: Vec<SecondEmail>,
    /// In the dead-letter queue without a right to be there, or not there though they must.
    pub letters: Vec<String>,
    /// Rows that say neither sent, skipped nor withheld, or not what they must; keys that can't be claimed.
    pub stuck: Vec<String>,
    /// What SES said and the ledger doesn't know.
    pub unrecorded: Vec<String>,
    /// Payloads that were taken for a duplicate, because SES settled the claim of another one under the same key.
    pub hidden_payloads: usize,
    /// Whatever else should not be.
    pub faults: Vec<String>,
}

impl Findings {
    /// `before` are the emails that had left before each event was sent once more.
    pub async fn gather(onemail: &Onemail, before: &Emails, postgres: &Postgres) -> Self {
        let plan = &*onemail.plan;
        let emails = onemail.chronicle.emails();
        let mut findings = Self {
            lost: lost(plan, before),
            second_emails: onemail.chronicle.second_emails(),
            ..Self::default()
        };
        findings.check_strays(plan, before, &emails);
        let rows = findings.check_ledger(plan, &emails, postgres).await;
        findings.check_letters(onemail, &rows);
        for (what, count) in onemail.tally.all() {
            let is_fault = ["fault:", "failed:", "workers that ended by themselves"]
                .iter()
                .any(|start| what.starts_with(start));
            if is_fault {
                findings.faults.push(format!("{count} x {what}"));
            }
        }
        findings.faults.extend(onemail.chronicle.untraced());
        findings
    }

    fn check_strays(&mut self, plan: &Plan, before: &Emails, emails: &Emails) {
        for (key, ids) in emails {
            if !plan.event(key).is_some_and(|event| event.kind.is_emailed()) {
                let fault = format!("an email left for {key}, which has none");
                self.faults.push(fault);
            }
            if before.get(key).is_some_and(|before| before != ids) {
                let fault =
                    format!("an email left for {key} when all was done and its event came again");
                self.faults.push(fault);
            }
        }
    }

    /// All that must make the test fail.
    pub fn complaints(&self, chronicle: &Chronicle) -> Vec<String> {
        let lost = self.lost.iter().map(|key| format!("lost: {key}"));
        let outside = self.second_emails.iter().filter_map(|second| {
            let why = second.excuse.as_ref().err()?;
            let (key, story) = (&second.key, chronicle.story(&second.key));
            Some(format!(
                "second email outside the gap: {key}: {why}\n{story}"
            ))
        });
        let others = [&self.letters, &self.stuck, &self.unrecorded, &self.faults];
        lost.chain(outside)
            .chain(others.into_iter().flatten().cloned())
            .collect()
    }
}

fn lost(plan: &Plan, emails: &Emails) -> Vec<String> {
    let events = plan.events.iter();
    events
        .filter(|event| event.kind.is_emailed() && !emails.contains_key(&event.key))
        .map(|event| event.key.clone())
        .collect()
}
