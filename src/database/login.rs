//! With what a connection is opened: address, user and password, and TLS.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::config::SslMode as Use;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::{self, DatabaseConfig, TlsConfig};

use super::secret::Secret;
use super::tls;
use super::token::Tokens;
use super::verdict::DatabaseError;

/// For opening a connection, TLS and authentication included.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A peer that doesn't acknowledge for so long is gone.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(15);

/// All that a connection needs.
pub(super) struct Login {
    pub settings: tokio_postgres::Config,
    pub tls: MakeRustlsConnect,
}

/// How we come by it.
pub(super) enum Logins {
    /// `DATABASE_URL` says it all.
    Fixed(Arc<Login>),
    Secret(Secret),
    Tokens(Box<Tokens>),
}

impl Login {
    /// # Errors
    /// The root certificates can't be read.
    pub fn new(settings: tokio_postgres::Config, tls: &TlsConfig) -> anyhow::Result<Self> {
        let (tls, usage) = tls::connector(tls)?;
        Ok(Self {
            settings: with_defaults(settings, usage),
            tls,
        })
    }

    pub fn with_password(&self, password: &str) -> Self {
        let mut settings = self.settings.clone();
        settings.password(password);
        Self {
            settings,
            tls: self.tls.clone(),
        }
    }
}

impl Logins {
    /// Asks nobody yet.
    ///
    /// # Errors
    /// The root certificates can't be read.
    pub fn new(config: &DatabaseConfig) -> anyhow::Result<Self> {
        // Also where a secret may still say otherwise: a file that can't be read stops the process at start.
        let login = Login::new(config.connection.clone(), &config.tls)?;
        Ok(match &config.login {
            config::Login::Url => Self::Fixed(Arc::new(login)),
            config::Login::Secret(secret) => {
                Self::Secret(Secret::new(secret.clone(), config.connection.clone()))
            }
            config::Login::IamToken(token) => {
                Self::Tokens(Box::new(Tokens::new(token.clone(), login)))
            }
        })
    }

    /// The one for the next connection.
    pub async fn next(&self) -> Result<Arc<Login>, DatabaseError> {
        match self {
            Self::Fixed(login) => Ok(Arc::clone(login)),
            Self::Secret(secret) => secret.login().await.map_err(DatabaseError::Secret),
            Self::Tokens(tokens) => match tokens.login().await {
                Ok(login) => Ok(Arc::new(login)),
                Err(error) => Err(DatabaseError::Token(error)),
            },
        }
    }

    /// Another than this one, whose password Postgres has refused; `None` if there is no other.
    pub async fn instead_of(&self, refused: &Login) -> Result<Option<Arc<Login>>, DatabaseError> {
        match self {
            Self::Secret(secret) => {
                let login = secret.login_instead_of(refused).await;
                let login = login.map_err(DatabaseError::Secret)?;
                Ok((login.settings != refused.settings).then_some(login))
            }
            // The next connection gets another token anyway.
            Self::Tokens(_) | Self::Fixed(_) => Ok(None),
        }
    }
}

fn with_defaults(mut settings: tokio_postgres::Config, usage: Use) -> tokio_postgres::Config {
    settings
        .ssl_mode(usage)
        .keepalives_idle(Duration::from_secs(30))
        .tcp_user_timeout(TCP_USER_TIMEOUT);
    if settings.get_application_name().is_none() {
        settings.application_name("onemail");
    }
    if settings.get_connect_timeout().is_none() {
        settings.connect_timeout(CONNECT_TIMEOUT);
    }
    settings
}
