//! Opens the connections that the pool keeps.

use std::time::Duration;

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::{ClientWrapper, ManagerConfig, RecyclingMethod};
use tokio_postgres::Client;

use super::login::{CONNECT_TIMEOUT, Login, Logins};
use super::verdict::DatabaseError;

/// A connection that rested longer may have died unnoticed, with the sandbox frozen meanwhile, and is asked
/// before it is used. While a batch runs none rests that long, so its round trips are saved.
const TRUSTED_AFTER_REST: Duration = Duration::from_secs(1);
/// For the answer of such a connection.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Has deadpool-postgres's manager open each connection, but with a login of its own: each may need another password,
/// and to come by it can fail in ways that are no errors of Postgres.
pub(super) struct Opener {
    logins: Logins,
}

impl Opener {
    pub fn new(logins: Logins) -> Self {
        Self { logins }
    }
}

impl Manager for Opener {
    type Type = ClientWrapper;
    type Error = DatabaseError;

    async fn create(&self) -> Result<ClientWrapper, DatabaseError> {
        // On the heap, with all that it may take to ask AWS: every claim and every settlement holds such a future.
        let login = Box::pin(self.logins.next()).await?;
        match open(&login).await {
            Err(error) if error.is_of_the_password() => {
                let Some(other) = Box::pin(self.logins.instead_of(&login)).await? else {
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
        client: &mut ClientWrapper,
        metrics: &Metrics,
    ) -> RecycleResult<DatabaseError> {
        let rested = metrics.last_used();
        if !client.is_closed() && (rested < TRUSTED_AFTER_REST || answers(client).await) {
            Ok(())
        } else {
            Err(RecycleError::message("the connection died while it rested"))
        }
    }
}

async fn open(login: &Login) -> Result<ClientWrapper, DatabaseError> {
    let manager = deadpool_postgres::Manager::from_config(
        login.settings.clone(),
        login.tls.clone(),
        ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        },
    );
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, manager.create()).await;
    Ok(opened.map_err(|_| DatabaseError::NoConnectionInTime)??)
}

/// No statement and no transaction: an answer to "are you there".
async fn answers(client: &Client) -> bool {
    matches!(
        tokio::time::timeout(CHECK_TIMEOUT, client.check_connection()).await,
        Ok(Ok(()))
    )
}
