//! Opens the connections that the pool keeps.

use std::time::Duration;

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::login::{CONNECT_TIMEOUT, Login, Logins};
use super::verdict::DatabaseError;

/// A connection that rested longer may have died unnoticed, with the sandbox frozen meanwhile, and is asked
/// before it is used. While a batch runs none rests that long, so its round trips are saved.
const TRUSTED_AFTER_REST: Duration = Duration::from_secs(1);
/// For the answer of such a connection.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Not deadpool-postgres's manager: each connection may need another password, and to come by it can fail in ways
/// that are no errors of Postgres.
pub(super) struct Opener {
    logins: Logins,
}

/// A connection, and the task that serves it, which ends with it.
pub(super) struct Session {
    pub client: Client,
    task: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Opener {
    pub fn new(logins: Logins) -> Self {
        Self { logins }
    }
}

impl Manager for Opener {
    type Type = Session;
    type Error = DatabaseError;

    async fn create(&self) -> Result<Session, DatabaseError> {
        let login = self.logins.next().await?;
        match open(&login).await {
            Err(error) if error.is_of_the_password() => {
                let Some(other) = self.logins.instead_of(&login).await? else {
                    return Err(error);
                };
                tracing::info!(
                    code = error.code(),
                    "Postgres refused the password, and the secret has another by now"
                );
                open(&other).await
            }
            opened => opened,
        }
    }

    async fn recycle(
        &self,
        session: &mut Session,
        metrics: &Metrics,
    ) -> RecycleResult<DatabaseError> {
        let rested = metrics.last_used();
        if !session.client.is_closed()
            && (rested < TRUSTED_AFTER_REST || answers(&session.client).await)
        {
            Ok(())
        } else {
            Err(RecycleError::message("the connection died while it rested"))
        }
    }
}

async fn open(login: &Login) -> Result<Session, DatabaseError> {
    let connecting = login.settings.connect(login.tls.clone());
    let (client, connection) = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_| DatabaseError::NoConnectionInTime)??;
    let task = tokio::spawn(async move {
        // Whoever uses the connection gets the error, too.
        if let Err(error) = connection.await {
            let error = DatabaseError::from(error);
            tracing::debug!(
                code = error.code(),
                cause = error.cause(),
                "a connection to Postgres ended"
            );
        }
    });
    Ok(Session { client, task })
}

async fn answers(client: &Client) -> bool {
    matches!(
        tokio::time::timeout(CHECK_TIMEOUT, client.simple_query("")).await,
        Ok(Ok(_))
    )
}
