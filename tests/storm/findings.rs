//! What the storm left behind, against what must be.

mod ledger;
mod letters;

use std::collections::{BTreeSet, HashMap};

use crate::chronicle::{Chronicle, SecondEmail};
use crate::modes::Modes;
use crate::onemail::{IN_DOUBT_WAIT, Onemail};
use crate::plan::{Event, Plan};
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
    /// Keys of events that may never have been sent, which the ledger and a dead letter say.
    pub held: BTreeSet<String>,
    /// Keys of such for which SES's word came after all.
    pub held_then_sent: BTreeSet<String>,
    /// Keys of events that can't be sent, as a dead letter says, whose claim could not be released.
    pub left_sending: BTreeSet<String>,
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
            second_emails: onemail.chronicle.second_emails(IN_DOUBT_WAIT),
            ..Self::default()
        };
        if plan.modes == Modes::Hold {
            for second in &mut findings.second_emails {
                second.excuse = Err("what is in doubt is held".to_owned());
            }
        }
        findings.check_strays(plan, before, &emails);
        let letters = letters::by_key(onemail);
        let rows = findings
            .check_ledger(plan, &emails, &letters, postgres)
            .await;
        findings.check_letters(onemail, &rows);
        findings.check_lost(plan, before);
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

    fn check_lost(&mut self, plan: &Plan, emails: &Emails) {
        let accounted_for =
            |event: &Event| emails.contains_key(&event.key) || self.held.contains(&event.key);
        let events = plan.events.iter().filter(|event| event.kind.is_emailed());
        let lost = events.filter(|event| !accounted_for(event));
        self.lost = lost.map(|event| event.key.clone()).collect();
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
