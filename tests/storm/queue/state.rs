//! What is on the queue, and what is due.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use fastrand::Rng;

use super::delivery::{Delivery, Receipt};
use super::{DeadLetter, Rules};

/// Among so many messages that are due, some are picked at random.
const SHUFFLED: usize = 40;

pub struct State {
    rules: Rules,
    rng: Rng,
    entries: HashMap<u64, Entry>,
    /// When each entry is to be seen again.
    due: BTreeSet<(Instant, u64)>,
    next: u64,
    pub deliveries: usize,
    pub dead_letters: Vec<DeadLetter>,
}

struct Entry {
    message_id: String,
    body: String,
    visible_at: Instant,
    receive_count: u32,
}

pub enum Received {
    Messages(Vec<Delivery>),
    /// Nothing is due before; `None`: there is nothing.
    NotBefore(Option<Instant>),
    /// All that was due had been delivered too often.
    MovedToDeadLetters,
}

impl State {
    pub fn new(rules: Rules, rng: Rng) -> Self {
        Self {
            rules,
            rng,
            entries: HashMap::new(),
            due: BTreeSet::new(),
            next: 0,
            deliveries: 0,
            dead_letters: Vec::new(),
        }
    }

    pub fn put(&mut self, message_id: &str, body: &str, at: Instant) {
        let entry = Entry {
            message_id: message_id.to_owned(),
            body: body.to_owned(),
            visible_at: at,
            receive_count: 0,
        };
        self.due.insert((at, self.next));
        self.entries.insert(self.next, entry);
        self.next += 1;
    }

    pub fn receive(&mut self, most: usize) -> Received {
        let now = Instant::now();
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        let mut due: Vec<_> = due.take(SHUFFLED.max(most)).copied().collect();
        if due.is_empty() {
            return Received::NotBefore(self.due.first().map(|(at, _)| *at));
        }
        self.rng.shuffle(&mut due);
        due.truncate(most);
        let messages: Vec<_> = due
            .into_iter()
            .filter_map(|(at, number)| {
                self.due.remove(&(at, number));
                self.hand_out(number, now)
            })
            .collect();
        if messages.is_empty() {
            Received::MovedToDeadLetters
        } else {
            Received::Messages(messages)
        }
    }

    fn hand_out(&mut self, number: u64, now: Instant) -> Option<Delivery> {
        let entry = self.entries.get_mut(&number)?;
        if entry.receive_count == self.rules.max_receive_count {
            self.dead_letters.push(DeadLetter {
                message_id: entry.message_id.clone(),
                reason: None,
            });
            self.entries.remove(&number);
            return None;
        }
        entry.receive_count += 1;
        entry.visible_at = now + self.rules.visibility_timeout;
        self.due.insert((entry.visible_at, number));
        self.deliveries += 1;
        Some(Delivery {
            message_id: entry.message_id.clone(),
            body: entry.body.clone(),
            receipt: Receipt {
                entry: number,
                receive_count: entry.receive_count,
            },
        })
    }

    pub fn delete(&mut self, receipt: Receipt) {
        if let Some(entry) = self.of_receipt(receipt) {
            let due = (entry.visible_at, receipt.entry);
            self.due.remove(&due);
            self.entries.remove(&receipt.entry);
        }
    }

    pub fn hide(&mut self, receipt: Receipt, until: Instant) -> bool {
        let Some(entry) = self.of_receipt(receipt) else {
            return false;
        };
        let before = std::mem::replace(&mut entry.visible_at, until);
        self.due.remove(&(before, receipt.entry));
        self.due.insert((until, receipt.entry));
        true
    }

    pub fn message_ids(&self) -> Vec<String> {
        let entries = self.entries.values();
        entries.map(|entry| entry.message_id.clone()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry, if this is the receipt of its last delivery. SQS may take an older one; it doesn't promise to.
    fn of_receipt(&mut self, receipt: Receipt) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&receipt.entry)?;
        (entry.receive_count == receipt.receive_count).then_some(entry)
    }
}
