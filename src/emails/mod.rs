//! The kinds of email: one folder each, in `emails/`, compiled into the binary.
//!
//! What a folder holds is described in `docs/emails.md`.

mod catalogue;
mod declaration;
mod fields;
mod folder;
mod manifest;
mod schema;

pub(crate) use catalogue::is_event_type;
pub use catalogue::{Catalogue, File};
pub(crate) use fields::is_key;
pub use fields::{Field, FieldProblem, FieldType, Fields};
pub use folder::{Folder, FolderError};
pub use schema::event_schema;
