//! `CLAIM_MODE=lease`: all events of a batch are claimed, sent and settled, each step by itself and over one connection;
//! no transaction is open while SES answers.
//!
//! A batch takes `rounds`, mostly one. In a `round` the `claims` are made, then the recipients are found (`look_up`),
//! then the emails are sent, while the `settler` writes what became of those before.

mod claims;
mod look_up;
mod round;
mod rounds;
mod settler;

use crate::queue::Answer;

use super::Invocation;
use super::lanes::Lane;
use super::outcome::Outcome;

use rounds::Rounds;

impl Invocation<'_> {
    /// The order of this mode, for all records of a batch: one round, unless it has a key twice.
    pub(super) async fn under_leases(&self, lanes: Vec<Lane<'_>>, answer: &Answer) {
        let mut rounds = Rounds::of(lanes);
        loop {
            let fronts = rounds.next();
            if fronts.is_empty() {
                return;
            }
            self.round(fronts, answer).await;
            for item in rounds.duplicates() {
                self.finish(item, &Outcome::Duplicate, answer);
            }
        }
    }
}
