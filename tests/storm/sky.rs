//! What the storm does to everybody at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

pub struct Sky {
    storming: AtomicBool,
    throttled_until: Mutex<Instant>,
    down_until: Mutex<Instant>,
    cuts: watch::Sender<usize>,
}

impl Sky {
    pub fn stormy() -> Self {
        Self {
            storming: AtomicBool::new(true),
            throttled_until: Mutex::new(Instant::now()),
            down_until: Mutex::new(Instant::now()),
            cuts: watch::Sender::new(0),
        }
    }

    pub fn is_storming(&self) -> bool {
        self.storming.load(Ordering::Relaxed)
    }

    /// From now on nothing fails any more.
    pub fn calm_down(&self) {
        self.storming.store(false, Ordering::Relaxed);
    }

    pub fn throttle(&self, time: Duration) {
        *self.throttled_until.lock().expect("nobody panics here") = Instant::now() + time;
    }

    pub fn take_ses_down(&self, time: Duration) {
        *self.down_until.lock().expect("nobody panics here") = Instant::now() + time;
    }

    pub fn ses_is_throttling(&self) -> bool {
        self.is_storming() && Instant::now() < *self.throttled_until.lock().expect("as above")
    }

    pub fn ses_is_down(&self) -> bool {
        self.is_storming() && Instant::now() < *self.down_until.lock().expect("as above")
    }

    /// Resets every connection to Postgres.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Changes with each cut from now on.
    pub fn cuts(&self) -> watch::Receiver<usize> {
        self.cuts.subscribe()
    }
}
