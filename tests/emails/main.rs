//! Each folder of `emails/` does what it says, and a broken one is refused with a message for whoever wrote it.
//!
//! The folders are read from the disk, as they are now. Their queries run on the job board of `local/jobboard.sql`.

mod broken_folders;
mod broken_samples;
mod careless_folders;
mod content;
mod documentation;
mod folders;
mod hostile_values;
mod jobboard;
mod mutations;
mod query;
mod recipients;
mod rehearsal;
mod report;
mod samples;
mod schema;
mod source;
mod specimen;
mod stage;
