//! Claims of lease mode: many at once, which outlive their connection and their worker.

use std::time::{Duration, Instant};

use super::{Book, Chronicle, Claim, End};

#[derive(Clone, Debug)]
pub(super) struct Lease {
    attempt: i64,
    /// When it ends at the earliest: by the time at which it was asked for.
    pub ends: Instant,
    /// When Postgres answered, and whether it was won.
    pub answered: Option<(Instant, bool)>,
    /// Its worker had the settlement written, or tried to.
    pub settling: bool,
    /// Since when its worker had Postgres know that the send is in doubt, or tried to.
    pub doubted: Option<Instant>,
}

impl Chronicle {
    pub fn leases_begin(&self, attempt: i64, keys: &[String], length: Duration, worker: &str) {
        let mut book = self.book();
        let now = Instant::now();
        for key in keys {
            // The answer was lost, and the claim is made again: it holds since the first time.
            let earlier = of_attempt(&mut book, attempt, key);
            let earlier = earlier.and_then(|claim| claim.lease.as_ref());
            let ends = earlier.map_or(now + length, |lease| lease.ends.min(now + length));
            book.claims.push(Claim {
                key: key.clone(),
                worker: worker.to_owned(),
                began: now,
                ended: None,
                lease: Some(Lease {
                    attempt,
                    ends,
                    answered: None,
                    settling: false,
                    doubted: None,
                }),
            });
        }
    }

    /// Each key, and whether it was won.
    pub fn leases_are_answered(&self, attempt: i64, answers: &[(String, bool)]) {
        for (key, won) in answers {
            self.change(attempt, key, |claim, lease| {
                lease.answered = Some((Instant::now(), *won));
                if !won {
                    claim.ended.get_or_insert((Instant::now(), End::RolledBack));
                }
            });
        }
    }

    pub fn settlement_is_asked_for(&self, attempt: i64, keys: &[String]) {
        for key in keys {
            self.change(attempt, key, |_, lease| lease.settling = true);
        }
    }

    pub fn doubt_is_told(&self, attempt: i64, keys: &[String]) {
        for key in keys {
            self.change(attempt, key, |_, lease| {
                lease.doubted.get_or_insert_with(Instant::now);
            });
        }
    }

    /// The keys whose rows were still this attempt's.
    pub fn leases_end<'k>(&self, attempt: i64, keys: impl Iterator<Item = &'k str>, end: End) {
        for key in keys {
            self.change(attempt, key, |claim, _| {
                claim.ended.get_or_insert((Instant::now(), end));
            });
        }
    }

    fn change(&self, attempt: i64, key: &str, change: impl FnOnce(&mut Claim, &mut Lease)) {
        let mut book = self.book();
        let Some(claim) = of_attempt(&mut book, attempt, key) else {
            return;
        };
        if let Some(mut lease) = claim.lease.take() {
            change(claim, &mut lease);
            claim.lease = Some(lease);
        }
    }
}

fn of_attempt<'b>(book: &'b mut Book, attempt: i64, key: &str) -> Option<&'b mut Claim> {
    let mut claims = book.claims.iter_mut().rev();
    claims.find(|claim| {
        let lease = claim.lease.as_ref();
        claim.key == key && lease.is_some_and(|lease| lease.attempt == attempt)
    })
}
