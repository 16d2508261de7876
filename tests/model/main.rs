//! The protocol as a model: every order in which its steps, and the world's, can follow one another is tried.
//!
//! An event's email walks through these steps, and each of them is a step here (`worker.rs`), with what can go wrong
//! before, in and after it:
//!
//! | step | transaction mode (`transaction.rs`) | lease mode (`lease.rs`) |
//! | --- | --- | --- |
//! | received | a message is delivered by SQS (`queue.rs`) | the same |
//! | claimed | the key is inserted, not committed; others wait | the key is committed as `sending`, under a lease |
//! | read again | marks, within the transaction | marks, in a transaction of its own |
//! | composed | the recipient is found and the email rendered | the same |
//! | sent | SES accepts it (`ses.rs`), and will tell so in a notification (`feedback.rs`) | the same |
//! | settled | the claim is committed as `sent` | the row becomes `sent`, if it is of this attempt still (`settle.rs`) |
//! | not sent | rolled back | the row is deleted, if it is `sending` and of this attempt still |
//! | in doubt | no claim, but a mark that holds up other messages for `IN_DOUBT_WAIT` | the row stays `sending`, its lease ends |
//! | held | a row in doubt for longer becomes `unknown`, and the message is moved to the dead-letter queue | the same |
//! | done | the message is deleted | the same |
//!
//! The world: SQS delivers a message again after its visibility timeout, and a copy of it at any time; two messages
//! can be about one event. A worker dies at any step, and a statement, a `COMMIT` or a request of its may arrive
//! after its death, at any time or never (`statement.rs`). Postgres loses a connection at any step; what it was asked
//! may be done, be done later, or not. SES refuses as often as it likes; its answer is lost or late. Notifications come
//! at any time, more than once, before SES's own answer and after everything else; they wait while a transaction holds
//! the key. An operator decides about events that are held, and redrives dead letters, at any time (`operator.rs`).
//!
//! Time is not counted. A timer (visibility timeout, lease, `IN_DOUBT_WAIT`) ends at any moment after it began, so
//! that whatever is shown here holds for all values of them. What is assumed of time is that an invocation ends
//! before its visibility timeout and before its lease; and, where a test says *in time*, that the notification of an
//! email is processed before a timer of its event ends.
//!
//! Limits. Two workers, two messages, two events, up to three faults in a run: the numbers stand beside each test.
//! A record is on its own: a batch that dies is, for each of its events, a worker that dies. Not modelled: events
//! that can't be sent (no recipient, malformed, refused for ever), FIFO queues, a Postgres that forgets what it has
//! committed (an asynchronous failover), the deletion of old rows, and notifications that are lost for good, except
//! where there are none at all. A message that is moved to the dead-letter queue and comes back is the same message
//! here, and a new one to SQS.
//!
//! `cargo test --test model -- --nocapture` prints what was searched, and the traces that the tests look for.

#![expect(
    clippy::print_stdout,
    reason = "the figures and traces are what one runs this for"
)]

// What is searched.
mod attempt;
mod checked;
mod checker;
mod choices;
mod describe;
mod design;
mod few;
mod hasher;
mod properties;
mod state;
mod step;
mod tidy;
mod world;

// The world.
mod feedback;
mod ledger;
mod operator;
mod queue;
mod ses;

// The protocol, and others.
mod claim;
mod fence;
mod lease;
mod settle;
mod statement;
mod transaction;
mod usual;
mod worker;

// What is shown.
mod details;
mod held;
mod lease_mode;
mod mixed_modes;
mod transaction_mode;
mod usual_designs;
mod without_feedback;
