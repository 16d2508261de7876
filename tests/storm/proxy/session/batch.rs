//! The statements of lease mode: the chronicle is told of each of their keys.

use crate::chronicle::End;
use crate::proxy::statement::{Batch, Does};
use crate::proxy::strike::{Moment, Strike};
use crate::proxy::wire::Message;

use super::{Asked, Session};

impl Session<'_> {
    pub(super) fn batch_begins(&self, batch: &Batch) -> Option<Strike> {
        /// Of the keys of a batch, whose strikes befall all of them.
        const STRUCK_FOR: usize = 3;
        let chronicle = &self.shared.chronicle;
        let moment = match batch.does {
            Does::Claim { lease } => {
                chronicle.leases_begin(batch.attempt, &batch.keys, lease, &self.worker);
                Moment::Claim
            }
            Does::Settle => {
                chronicle.settlement_is_asked_for(batch.attempt, &batch.keys);
                Moment::Commit
            }
            Does::LeaveInDoubt => {
                chronicle.doubt_is_told(batch.attempt, &batch.keys);
                Moment::Commit
            }
            Does::Release => Moment::Commit,
        };
        let mut strikes = batch.keys.iter().take(STRUCK_FOR);
        strikes.find_map(|key| self.shared.strike(moment, key))
    }

    /// Each statement is committed by itself, so what came back is committed.
    pub(super) fn batch_ends(&self, batch: &Batch, rows: &[(String, bool)]) {
        let chronicle = &self.shared.chronicle;
        let end = match batch.does {
            Does::Claim { .. } => return chronicle.leases_are_answered(batch.attempt, rows),
            Does::Settle => End::Committed,
            Does::Release => End::RolledBack,
            Does::LeaveInDoubt => End::InDoubt,
        };
        chronicle.leases_end(batch.attempt, rows.iter().map(|(key, _)| key.as_str()), end);
    }
}

impl Asked {
    /// Takes note of a row that came back: its key comes first, and of a claim then whether it was won.
    pub(super) fn row(&mut self, message: &Message) {
        if self.batch.is_some() {
            let mut columns = message.columns();
            let key = columns.next().unwrap_or_default();
            let won = columns.next() == Some(&[1]);
            let key = String::from_utf8_lossy(key).into_owned();
            self.rows.push((key, won));
        }
    }
}
