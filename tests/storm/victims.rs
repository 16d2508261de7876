//! The workers that are alive, so that they can be killed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::task::AbortHandle;

use crate::chronicle::Chronicle;
use crate::support::lambda::Sandbox;
use crate::tally::Tally;

pub struct Victims {
    chronicle: Arc<Chronicle>,
    pub tally: Tally,
    alive: Mutex<BTreeMap<String, Victim>>,
}

#[derive(Clone)]
pub enum Victim {
    Process(Arc<Sandbox>),
    /// Of a design that runs inside this process.
    Task(AbortHandle),
}

impl Victims {
    pub fn new(chronicle: Arc<Chronicle>) -> Self {
        Self {
            chronicle,
            tally: Tally::default(),
            alive: Mutex::default(),
        }
    }

    pub fn add(&self, name: &str, victim: Victim) {
        self.alive().insert(name.to_owned(), victim);
    }

    /// It has ended, by us or by itself.
    pub fn remove(&self, name: &str) {
        self.alive().remove(name);
    }

    /// Whether it is at work, as far as we have a hand in it.
    pub fn knows(&self, name: &str) -> bool {
        self.alive().contains_key(name)
    }

    /// Everybody's sessions ended.
    pub fn postgres_was_restarted(&self, began: Instant, ended: Instant) {
        self.chronicle.postgres_was_restarted(began, ended);
    }

    /// Its end is near: Lambda's deadline has passed.
    pub fn doom(&self, name: &str) {
        self.chronicle.worker_dies(name);
    }

    /// As `kill -9`.
    pub fn kill(&self, name: &str) {
        let Some(victim) = self.alive().remove(name) else {
            return;
        };
        self.tally.count("kills");
        // Noted first: what follows is because of it.
        self.chronicle.worker_dies(name);
        match victim {
            Victim::Process(sandbox) => {
                tokio::spawn(async move { sandbox.kill().await });
            }
            Victim::Task(task) => task.abort(),
        }
    }

    /// Has a worker stand still for good; when its deadline passes, Lambda kills it. A task can't be stopped so.
    pub fn stop(&self, name: &str) {
        let Some(victim) = self.alive().get(name).cloned() else {
            return;
        };
        match victim {
            Victim::Process(sandbox) => {
                self.tally.count("stops");
                self.chronicle.worker_dies(name);
                sandbox.freeze();
            }
            Victim::Task(_) => self.kill(name),
        }
    }

    /// Ends all of them. One that stands still would outlive this process.
    pub async fn kill_all(&self) {
        let alive = std::mem::take(&mut *self.alive());
        for victim in alive.into_values() {
            match victim {
                Victim::Process(sandbox) => sandbox.kill().await,
                Victim::Task(task) => task.abort(),
            }
        }
    }

    /// One of those that are alive and whose names begin so.
    pub fn pick(&self, role: char, which: usize) -> Option<String> {
        let alive = self.alive();
        let names: Vec<_> = alive.keys().filter(|name| name.starts_with(role)).collect();
        let place = which.checked_rem(names.len())?;
        Some(names[place].clone())
    }

    fn alive(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Victim>> {
        self.alive.lock().expect("nobody panics here")
    }
}
