//! The dead-letter queue, letter by letter.

use std::collections::{BTreeSet, HashMap};

use crate::modes::Modes;
use crate::onemail::Onemail;
use crate::plan::{Kind, Message};

use super::Findings;
use super::ledger::Row;

/// The reasons of the dead letters, by the key of their event.
pub(super) type Letters = HashMap<String, BTreeSet<String>>;

pub(super) fn by_key(onemail: &Onemail) -> Letters {
    let mut letters = Letters::new();
    for letter in onemail.events.dead_letters() {
        let event = onemail.plan.event_of(&letter.message_id);
        if let (Some(event), Some(reason)) = (event, letter.reason) {
            letters.entry(event.key.clone()).or_default().insert(reason);
        }
    }
    letters
}

impl Findings {
    pub(super) fn check_letters(&mut self, onemail: &Onemail, rows: &HashMap<String, Row>) {
        let plan = &*onemail.plan;
        let mut dead = BTreeSet::new();
        for letter in onemail.events.dead_letters() {
            let event = plan.event_of(&letter.message_id);
            let expected = event.and_then(|event| event.kind.reason());
            if let Some(event) = event
                && letter.reason.as_deref() == Some("held")
                && plan.modes == Modes::Hold
            {
                self.check_held(&event.key, rows);
            } else if letter.reason.is_none() || letter.reason.as_deref() != expected {
                self.letters.push(format!(
                    "in the dead-letter queue, which is for {expected:?}: {letter:?}"
                ));
            }
            dead.insert(letter.message_id);
        }
        for letter in onemail.notifications.dead_letters() {
            self.letters.push(format!(
                "a notification in the dead-letter queue: {letter:?}"
            ));
        }
        for message in &plan.messages {
            let kind = plan.events[message.event].kind;
            let must_be_there = kind.reason().is_some() && kind != Kind::KeyReused;
            if must_be_there && !dead.contains(&message.id) {
                self.letters.push(format!(
                    "acknowledged, and not in the dead-letter queue: {}, which is {kind:?}",
                    message.id
                ));
            }
        }
        self.check_reused_keys(onemail, &dead, rows);
    }

    /// What was held once is held still, unless SES told that it has the email.
    fn check_held(&mut self, key: &str, rows: &HashMap<String, Row>) {
        if self.held.contains(key) {
            return;
        }
        let row = rows.get(key);
        if row.is_some_and(|row| row.outcome == "sent" && row.settled_by == "ses") {
            self.held_then_sent.insert(key.to_owned());
        } else {
            let outcome = row.map(|row| &row.outcome);
            self.letters
                .push(format!("{key} was held, and the ledger says {outcome:?}"));
        }
    }

    /// One payload of a reused key is sent, the other must be in the dead-letter queue, in all its messages.
    fn check_reused_keys(
        &mut self,
        onemail: &Onemail,
        dead: &BTreeSet<String>,
        rows: &HashMap<String, Row>,
    ) {
        let plan = &*onemail.plan;
        let emails = onemail.chronicle.emails();
        let mut messages = HashMap::<usize, Vec<&Message>>::new();
        for message in &plan.messages {
            if plan.events[message.event].kind == Kind::KeyReused {
                messages.entry(message.event).or_default().push(message);
            }
        }
        for (event, messages) in messages {
            let refused = |payload: usize| {
                let mut messages = messages.iter().filter(|message| message.payload == payload);
                messages.all(|message| dead.contains(&message.id))
            };
            let key = &plan.events[event].key;
            // Where a second email left, both payloads may have been sent.
            let sent_once = emails.get(key).is_none_or(|ids| ids.len() < 2);
            if refused(0) || refused(1) || !sent_once {
                continue;
            }
            if rows.get(key).is_some_and(|row| row.settled_by == "ses") {
                self.hidden_payloads += 1;
            } else {
                self.letters
                    .push(format!("both payloads of {key} were acknowledged"));
            }
        }
    }
}
