//! Addresses, names and header values in the forms that SES takes.

mod address;
mod header;
mod invisible;
mod mailbox;

pub use address::{Address, AddressProblem};
pub use header::{encode_words, one_line};
pub use invisible::{trim_invisible, visible};
pub use mailbox::Mailbox;
