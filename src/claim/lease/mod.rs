//! The claim in lease mode: the keys of a batch become `sending`, in a statement that is committed at once. Who has
//! won them has them until its lease ends, by the database's clock.

mod attempt;
mod claim;
mod group;
mod look_up;
mod settling;

pub use attempt::Attempt;
#[cfg(test)]
pub(super) use claim::CLAIM;
pub use claim::{Candidate, LeaseClaim, Terms, claim_all};
pub use group::Written;
pub use look_up::{Found, look_up};
pub use settling::{Locked, Settling};
