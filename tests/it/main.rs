//! The function from outside: the real binary as its own process, over a stand-in of Lambda's Runtime API, real
//! Postgres, and an SES that does what a test says.
//!
//! Tests wait for signals, never for time to pass: a request has arrived at SES, a message has passed the proxy, a
//! session waits for a lock, a log line is there. Where time itself is what a test is about, it is a deadline.

mod addresses;
mod backing_off;
mod batch;
mod cleanup;
mod command_line;
mod commit;
mod configuration;
mod content;
mod database_access;
mod dead_letters;
mod deadline;
mod derived_keys;
mod duplicates;
mod errors;
mod events;
mod failed_sends;
mod feedback;
mod fifo;
mod frozen;
mod hostile_settings;
mod in_doubt;
mod invisible;
mod lease;
mod logs;
mod mailboxes;
mod masked;
mod metrics;
mod migrate;
mod overlooked;
mod queue;
mod recipients;
mod request;
mod roles;
mod round_trips;
mod schema_version;
mod send_rate;
mod support;
mod volume;
