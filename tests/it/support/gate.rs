//! A gate that holds up whoever comes to it until the test opens it.

use tokio::sync::watch;

#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub async fn pass(&self) {
        let mut state = self.0.subscribe();
        // The sender lives as long as `self`, so this can't fail.
        let _ = state.wait_for(|open| *open).await;
    }
}
