//! SQS: the batch that comes in, the answer that goes out, and what becomes of a message that failed.

mod answer;
mod batch;
mod client;
mod dead_letter;
mod record;
mod visibility;
mod work;

pub use answer::{Answer, Unreportable};
pub use batch::{Batch, NotAnSqsEvent};
pub use client::Queue;
pub use dead_letter::{DeadLetter, DeadLetters, NotMoved};
pub use record::{MessageId, Record};
pub use visibility::{ComeBack, backoff};
pub use work::{each, until};
