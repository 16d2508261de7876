//! An event comes in: from the body of a message to an event that is proven valid.
//!
//! All that can be found wrong with an event is found here, before the database is asked.

mod envelope;
mod event;
mod key;
mod payload;

pub(crate) use envelope::open as open_envelope;
pub use event::{Event, Malformed};
pub use key::IdempotencyKey;
pub use payload::PayloadHash;
