//! A few connections to Postgres, opened when they are needed and kept while the sandbox is warm.

use std::time::Duration;

use anyhow::Context as _;
use deadpool::Runtime;
use deadpool::managed::{Object, Pool};
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::clock::Deadline;
use crate::config::DatabaseConfig;

use super::login::Logins;
use super::opener::Opener;
use super::schema::look_at_schema;
use super::verdict::{DatabaseError, DatabaseVerdict};

pub struct Connections {
    pool: Pool<Opener>,
    /// Set once the schema was found to be as new as this binary. `None`: it is being made.
    schema_is_ready: Option<OnceCell<()>>,
}

/// For the look at the schema, one statement on the catalog.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(2);

impl Connections {
    /// Opens nothing yet, and asks nobody for a password.
    ///
    /// # Errors
    /// The root certificates can't be read.
    pub fn new(config: &DatabaseConfig, most: usize) -> anyhow::Result<Self> {
        Ok(Self {
            schema_is_ready: Some(OnceCell::new()),
            ..Self::for_migrating(config, most)?
        })
    }

    /// To a database whose schema may be of any version.
    ///
    /// # Errors
    /// The root certificates can't be read.
    pub fn for_migrating(config: &DatabaseConfig, most: usize) -> anyhow::Result<Self> {
        let pool = Pool::builder(Opener::new(Logins::new(config)?))
            .max_size(most)
            .runtime(Runtime::Tokio1)
            .build()
            .context("Failed to set up the connection pool")?;
        Ok(Self {
            pool,
            schema_is_ready: None,
        })
    }

    /// A connection that is alive as far as can be told, to a schema that has all that this binary needs: the
    /// first one asks, until the answer was yes once.
    ///
    /// # Errors
    /// None could be had before the deadline, or the schema is too old.
    pub async fn get(&self, deadline: Deadline) -> Result<Connection, DatabaseError> {
        let get = async {
            let connection = Connection(Some(self.pool.get().await?));
            if let Some(ready) = &self.schema_is_ready {
                ready.get_or_try_init(|| check(&connection)).await?;
            }
            Ok(connection)
        };
        match tokio::time::timeout_at(deadline.instant(), get).await {
            Ok(got) => got,
            Err(_) => Err(DatabaseError::NoConnectionInTime),
        }
    }
}

async fn check(connection: &Connection) -> Result<(), DatabaseError> {
    tokio::time::timeout(SCHEMA_TIMEOUT, look_at_schema(connection))
        .await
        .unwrap_or(Err(DatabaseError::NoAnswerInTime))
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
                return Err(error);
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
