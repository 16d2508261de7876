//! `CLAIM_MODE=lease`: all events of a batch are claimed, sent and settled, each step by itself and over one connection;
//! no transaction is open while SES answers.

mod claims;
mod round;
mod settler;

use crate::queue::Answer;

use super::Invocation;
use super::lanes::{self, Lane};
use super::outcome::Outcome;

impl Invocation<'_> {
    /// The order of this mode, for all records of a batch. A key is claimed once at a time, so a batch that has one twice
    /// takes two rounds, unless the first was handled.
    pub(super) async fn under_leases(&self, mut lanes: Vec<Lane<'_>>, answer: &Answer) {
        loop {
            let fronts = lanes::fronts(&mut lanes);
            if fronts.is_empty() {
                return;
            }
            self.round(fronts, answer).await;
            for item in lanes::duplicates(&mut lanes) {
                self.finish(item, &Outcome::Duplicate, answer);
            }
        }
    }
}
