//! Every crash is tried: the real worker is killed, or loses a reply, at each step of the walk of one event, and the
//! queue then delivers again by SQS's rules, to a worker in the same mode or in the other one. Each case tells how many emails left and what the ledger says of them.
//!
//! Postgres is real, behind a proxy; SES is a stand-in that tells of each email that it took, as a configuration set
//! does, and the real `feedback` hears it. Only time is not real: whatever waits, a visibility timeout say, is over when
//! nothing else is left to happen ([`stage`]).

mod crash;
mod deaf;
mod decision;
mod fate;
mod loss;
mod moment;
mod queue;
mod road;
mod stage;
#[path = "../it/support/mod.rs"]
#[expect(
    dead_code,
    reason = "shared with the integration tests, which use all of it"
)]
mod support;
mod table;
mod two_messages;
