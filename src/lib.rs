//! onemail sends one email for each business event that arrives on an SQS queue.
//!
//! The story of a record, in the order of the modules:
//!
//! 1. [`receive`]: an event comes in and is proven valid, before the database is asked;
//! 2. [`claim`]: its key is inserted into the ledger, inside a transaction that stays open, or under a lease;
//! 3. [`compose`]: event and recipient become an email, with [`emails`] holding each kind of email;
//! 4. [`send`]: SES gets the email, in one attempt;
//! 5. [`settle`]: SES's message id and the claim are committed, or the row is settled.
//!
//! [`notify`] walks each record of a batch through the five and answers SQS; [`feedback`] hears from SES what
//! became of each email, and completes what a worker that died could not; [`cleanup`] forgets what is old. What is
//! promised, and why, is in `docs/guarantee.md`.

pub mod causes;
pub mod claim;
pub mod cleanup;
pub mod clock;
pub mod compose;
pub mod config;
pub mod database;
pub mod emails;
pub mod feedback;
pub mod function;
pub mod logging;
pub mod mail;
pub mod metrics;
pub mod migrate;
pub mod notify;
pub mod queue;
pub mod receive;
pub mod run;
pub mod send;
pub mod settle;
