//! A standard queue by SQS's rules, on a clock that runs faster.
//!
//! A message that was handed out is hidden for the visibility timeout, or for as long as whoever got it says; it is
//! gone when it is deleted with the receipt of its last delivery; it comes in any order, and now and then once more
//! although nobody asked; after too many deliveries it goes to the dead-letter queue.

mod delivery;
mod state;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::sync::watch;

pub use delivery::{Delivery, Receipt};
use state::{Received, State};

/// A second of a delay that the function asks for lasts a tenth of one here.
const FASTER: u32 = 10;
/// A quarter of an hour would outlast the storm.
const LONGEST_DELAY: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Longer than the function's timeout, as SQS demands.
    pub visibility_timeout: Duration,
    pub max_receive_count: u32,
}

pub struct Queue {
    pub name: &'static str,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

/// A message in the dead-letter queue.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// As it was on the queue of events.
    pub message_id: String,
    /// The function's word; `None`: the redrive policy moved it after too many deliveries.
    pub reason: Option<String>,
}

impl Queue {
    pub fn new(name: &'static str, rules: Rules, rng: Rng) -> Self {
        Self {
            name,
            state: Mutex::new(State::new(rules, rng)),
            changed: watch::Sender::new(()),
        }
    }

    pub fn send_at(&self, message_id: &str, body: &str, at: Instant) {
        self.change(|state| state.put(message_id, body, at));
    }

    /// Waits for at least one message, and gives at most so many.
    pub async fn receive(&self, most: usize) -> Vec<Delivery> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let next = match self.look(|state| state.receive(most)) {
                Received::Messages(messages) => return messages,
                Received::NotBefore(next) => next,
                Received::MovedToDeadLetters => {
                    self.changed.send_replace(());
                    continue;
                }
            };
            let due = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                _ = changed.changed() => {}
            }
        }
    }

    pub fn delete(&self, delivery: &Delivery) {
        self.change(|state| state.delete(delivery.receipt()));
    }

    /// Gives whether the receipt was of the last delivery.
    pub fn change_visibility(&self, receipt: Receipt, timeout: Duration) -> bool {
        let after = (timeout / FASTER).min(LONGEST_DELAY);
        self.change(|state| state.hide(receipt, Instant::now() + after))
    }

    /// As the function's own `SendMessage` to the dead-letter queue.
    pub fn give_up(&self, letter: DeadLetter) {
        self.change(|state| state.dead_letters.push(letter));
    }

    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.look(|state| state.dead_letters.clone())
    }

    pub fn deliveries(&self) -> usize {
        self.look(|state| state.deliveries)
    }

    /// The ids of what is on it, whether to be seen or not.
    pub fn left(&self) -> Vec<String> {
        self.look(|state| state.message_ids())
    }

    pub async fn emptied(&self) {
        let mut changed = self.changed.subscribe();
        let empty = |_: &()| self.look(|state| state.is_empty());
        changed.wait_for(empty).await.expect("the sender is ours");
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = self.look(change);
        self.changed.send_replace(());
        result
    }

    /// For what nobody waits for.
    fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().expect("nobody panics here"))
    }
}
