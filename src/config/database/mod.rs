//! Where Postgres is, who we are to it, and how much of its identity is checked.

mod tls;
mod url;

pub use tls::{SslMode, SslRootCert, TlsConfig, TlsWish};

use tokio_postgres::config::Host;

use super::{ConfigError, Env};

use url::{DatabaseUrl, URL};

const SECRET: &str = "the ARN of a Secrets Manager secret, arn:aws:secretsmanager:...:secret:...";
const POSTGRES_PORT: u16 = 5432;

/// Read from `DATABASE_URL`, `DATABASE_SECRET_ARN`, `DATABASE_IAM_AUTH`, `PGSSLMODE` and `PGSSLROOTCERT`.
#[derive(Debug)]
pub struct DatabaseConfig {
    /// What `DATABASE_URL` says, TLS apart; what a secret says of the server counts where this says nothing.
    pub connection: tokio_postgres::Config,
    pub login: Login,
    /// As far as it is known without the secret.
    pub tls: TlsConfig,
}

/// Where user and password come from.
#[derive(Debug)]
pub enum Login {
    /// `DATABASE_URL` has them.
    Url,
    /// A secret in the form that RDS writes has both, and the server's address where the URL has none.
    Secret(SecretLogin),
    /// The user is in `DATABASE_URL`, and the password is a token that RDS takes for a quarter of an hour.
    IamToken(TokenLogin),
}

#[derive(Clone, Debug)]
pub struct SecretLogin {
    pub arn: String,
    /// What the secret says of TLS comes between the two.
    pub tls_of_url: TlsWish,
    pub tls_of_environment: TlsWish,
}

/// What a token is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenLogin {
    pub host: String,
    pub port: u16,
    pub user: String,
}

impl DatabaseConfig {
    /// # Errors
    /// Names the first variable that is missing or malformed.
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        let iam = env.parsed("DATABASE_IAM_AUTH", "true or false", |value| {
            value.parse::<bool>().ok()
        })?;
        let secret = env.parsed("DATABASE_SECRET_ARN", SECRET, secret_arn)?;
        let url = match env.get("DATABASE_URL") {
            Some(url) => DatabaseUrl::parse(url)?,
            None if secret.is_some() => DatabaseUrl::default(),
            None => {
                return Err(ConfigError::because(
                    "DATABASE_URL",
                    "is not set, and DATABASE_SECRET_ARN neither",
                    URL,
                ));
            }
        };
        let tls_of_environment = TlsWish::of_environment(env)?;
        let tls = url.tls.clone().or(&tls_of_environment);
        let tls = tls.settle("DATABASE_URL")?;
        let login = match (secret, iam == Some(true)) {
            (Some(_), true) => {
                return Err(ConfigError::because(
                    "DATABASE_IAM_AUTH",
                    "is true although DATABASE_SECRET_ARN is set, whose password would not be used",
                    "one of the two",
                ));
            }
            (Some(arn), false) => Login::Secret(SecretLogin {
                arn,
                tls_of_url: url.tls,
                tls_of_environment,
            }),
            (None, true) => Login::IamToken(token_login(&url, &tls)?),
            (None, false) => {
                url.must_name_a_host()?;
                url.must_name_a_user()?;
                Login::Url
            }
        };
        Ok(Self {
            connection: url.connection,
            login,
            tls,
        })
    }
}

/// <https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_iam-permissions.html#iam-resources>
fn secret_arn(value: &str) -> Option<String> {
    let parts: Vec<&str> = value.splitn(7, ':').collect();
    matches!(parts.as_slice(), ["arn", _, "secretsmanager", _, _, "secret", name] if !name.is_empty())
        .then(|| value.to_owned())
}

fn token_login(url: &DatabaseUrl, tls: &TlsConfig) -> Result<TokenLogin, ConfigError> {
    // A token is a password, and RDS itself refuses it without TLS.
    if let SslMode::Disable | SslMode::Prefer = tls.mode {
        return Err(ConfigError::because(
            "DATABASE_IAM_AUTH",
            "is true, but sslmode is disable or prefer (the default), so that the token, which is a password, \
             could leave unencrypted",
            "sslmode=verify-full, or at least require, in DATABASE_URL or PGSSLMODE",
        ));
    }
    url.must_name_a_host()?;
    let [Host::Tcp(host)] = url.connection.get_hosts() else {
        return Err(ConfigError::because(
            "DATABASE_URL",
            "names more than one host, or a socket, while DATABASE_IAM_AUTH is true and a token is made for one \
             host",
            "postgres://user@host:5432/database",
        ));
    };
    Ok(TokenLogin {
        host: host.clone(),
        port: url
            .connection
            .get_ports()
            .first()
            .copied()
            .unwrap_or(POSTGRES_PORT),
        user: url.must_name_a_user()?.to_owned(),
    })
}

#[cfg(test)]
mod tests;
