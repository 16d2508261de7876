//! Connections to Postgres, and what its errors mean.

mod pool;
mod tls;
mod verdict;

pub use pool::{Connection, Connections};
pub use verdict::{DatabaseError, DatabaseVerdict};
