//! An event comes in: from an SQS batch to events that are proven valid.
//!
//! All that can be found wrong with an event is found here, before the database is asked.

mod batch;
mod envelope;
mod event;
mod key;
mod payload;
mod record;

pub use batch::{Batch, NotAnSqsEvent};
pub use event::{Event, Malformed};
pub use key::IdempotencyKey;
pub use payload::PayloadHash;
pub use record::{MessageId, Record};
