//! Event and recipient become an email.

mod email;
mod recipient;
mod tags;

pub use email::{ComposeError, Email, compose};
pub use recipient::{Destination, Recipient, destination};
pub use tags::ledger_tags;
