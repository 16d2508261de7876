//! A few connections to Postgres, opened when they are needed and kept while the sandbox is warm.

use std::time::Duration;

use anyhow::Context as _;
use deadpool::Runtime;
use deadpool::managed::{Object, Pool};
use tokio_postgres::Client;

use crate::clock::Deadline;
use crate::config::DatabaseConfig;

use super::login::Logins;
use super::opener::Opener;
use super::schema::look_at_schema;
use super::verdict::{DatabaseError, DatabaseVerdict};

pub struct Connections {
    pool: Pool<Opener>,
}

/// For the look at the schema, one statement on the catalog.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(2);

impl Connections {
    /// Opens nothing yet, and asks nobody for a password.
    ///
    /// # Errors
    /// The root certificates can't be read.
    pub fn new(config: &DatabaseConfig, most: usize) -> anyhow::Result<Self> {
        let pool = Pool::builder(Opener::new(Logins::new(config)?))
            .max_size(most)
            .runtime(Runtime::Tokio1)
            .build()
            .context("Failed to set up the connection pool")?;
        Ok(Self { pool })
    }

    /// A connection that is alive as far as can be told.
    ///
    /// # Errors
    /// None could be had before the deadline.
    pub async fn get(&self, deadline: Deadline) -> Result<Connection, DatabaseError> {
        match tokio::time::timeout_at(deadline.instant(), self.pool.get()).await {
            Ok(Ok(object)) => Ok(Connection(Some(object))),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(DatabaseError::NoConnectionInTime),
        }
    }

    /// Whether the schema has all that this binary needs.
    ///
    /// # Errors
    /// It hasn't, or that could not be asked.
    pub async fn check_schema(&self, deadline: Deadline) -> Result<(), DatabaseError> {
        let look = async {
            let connection = self.get(deadline).await?;
            look_at_schema(&connection).await?;
            connection.rest();
            Ok(())
        };
        tokio::time::timeout(deadline.left_at_most(SCHEMA_TIMEOUT), look)
            .await
            .unwrap_or(Err(DatabaseError::NoAnswerInTime))
    }

    /// Where a table or a column is missing, the schema may be too old, and then that is what whoever operates this
    /// must know.
    async fn or_the_schema(&self, error: DatabaseError, deadline: Deadline) -> DatabaseError {
        if !error.is_of_the_schema() {
            return error;
        }
        match self.check_schema(deadline).await {
            Err(DatabaseError::SchemaTooOld(old)) => DatabaseError::SchemaTooOld(old),
            _ => error,
        }
    }
}

/// The first connection may have died in the pool, the second with its node.
const MOST_CONNECTIONS: u32 = 3;

impl Connections {
    /// Does the work on a connection, and on another where that may cure what failed. The work must be such
    /// that a failure has changed nothing, or that doing it twice is as good as once.
    ///
    /// # Errors
    /// The last one; the work was not done.
    pub async fn with<T>(
        &self,
        deadline: Deadline,
        work: impl AsyncFn(Connection) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.get(deadline).await {
                Ok(connection) => match work(connection).await {
                    Ok(done) => return Ok(done),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            let again = error.verdict() == DatabaseVerdict::TryAnotherConnection
                && tries < MOST_CONNECTIONS
                && !deadline.left().is_zero();
            if !again {
                return Err(self.or_the_schema(error, deadline).await);
            }
            // What befell this one, a restart or a failover, has befallen those that rest in the pool.
            self.pool.retain(|_, _| false);
            tracing::info!(
                code = error.code(),
                cause = error.cause(),
                "trying another connection to Postgres"
            );
        }
    }
}

/// A connection that goes back to the pool only when [`Connection::rest`] says that it may.
///
/// Dropped in any other way, a cancelled future say, it may be inside a transaction or have an answer
/// underway; it is closed, and Postgres rolls back.
pub struct Connection(Option<Object<Opener>>);

impl Connection {
    pub fn client(&self) -> &Client {
        self.0.as_ref().expect("only `rest` and `drop` take it")
    }

    pub fn client_mut(&mut self) -> &mut Client {
        self.0.as_mut().expect("only `rest` and `drop` take it")
    }

    /// Back to the pool: no transaction is open on it and nothing is underway.
    pub fn rest(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}
