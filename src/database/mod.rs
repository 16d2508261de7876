//! Connections to Postgres, and what its errors mean.

mod login;
mod opener;
mod pool;
mod roots;
mod schema;
mod secret;
mod tls;
mod token;
mod verdict;

pub use pool::{Connection, Connections};
pub use schema::{NEEDED_VERSION, SchemaTooOld};
pub use secret::SecretError;
pub use token::TokenError;
pub use verdict::{DatabaseError, DatabaseVerdict};
