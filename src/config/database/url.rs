//! `DATABASE_URL`.

use percent_encoding::percent_decode_str;

use crate::config::ConfigError;

use super::tls::{SSL_MODE, SslMode, SslRootCert, TlsWish};

pub(super) const URL: &str =
    "postgres://user:password@host:5432/database, user and password percent-encoded";

/// Some of libpq's: those that mean something here.
const PARAMETERS: &str = "sslmode, sslrootcert, application_name, options, connect_timeout, \
    target_session_attrs=read-write, channel_binding, load_balance_hosts, tcp_user_timeout, keepalives..., and whatever \
    else a password has percent-encoded";

/// What the URL says; all of it may be left open.
#[derive(Debug, Default)]
pub(super) struct DatabaseUrl {
    /// All but TLS. tokio-postgres refuses `verify-full` and `sslrootcert`, so both are taken out of the URL.
    pub connection: tokio_postgres::Config,
    pub tls: TlsWish,
}

impl DatabaseUrl {
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        let (url, tls) = split_tls_parameters(url)?;
        Ok(Self {
            connection: connection(&url)?,
            tls,
        })
    }

    pub fn must_name_a_host(&self) -> Result<(), ConfigError> {
        if self.connection.get_hosts().is_empty() {
            return Err(ConfigError::because("DATABASE_URL", "names no host", URL));
        }
        Ok(())
    }

    pub fn must_name_a_user(&self) -> Result<&str, ConfigError> {
        self.connection
            .get_user()
            .ok_or_else(|| ConfigError::because("DATABASE_URL", "names no user", URL))
    }
}

fn split_tls_parameters(url: &str) -> Result<(String, TlsWish), ConfigError> {
    let mut tls = TlsWish::default();
    let Some((base, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), tls));
    };
    let mut others = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode_str(value).decode_utf8_lossy();
        match name {
            "sslmode" => {
                tls.mode = Some(SslMode::parse(&value).ok_or_else(|| {
                    ConfigError::because("DATABASE_URL", "has an unknown sslmode", SSL_MODE)
                })?);
            }
            "sslrootcert" => tls.root_cert = Some(SslRootCert::parse(&value)),
            _ => others.push(parameter),
        }
    }
    if others.is_empty() {
        return Ok((base.to_owned(), tls));
    }
    Ok((format!("{base}?{}", others.join("&")), tls))
}

fn connection(url: &str) -> Result<tokio_postgres::Config, ConfigError> {
    let authority = url
        .strip_prefix("postgres://")
        .or_else(|| url.strip_prefix("postgresql://"))
        .ok_or_else(|| ConfigError::malformed("DATABASE_URL", URL))?
        .split(['/', '?'])
        .next()
        .unwrap_or_default();
    if authority.matches('@').count() > 1 || url.contains('#') {
        // Such a URL parses, but its password ends up in the host name and so in error messages.
        return Err(ConfigError::because(
            "DATABASE_URL",
            "has an `@` or `#` that is not percent-encoded",
            URL,
        ));
    }
    // The parser's own message can quote the URL, and even a parameter's name may be a piece of a password.
    url.parse().map_err(|_| {
        let without_parameters = url.split('?').next().unwrap_or_default();
        if without_parameters.parse::<tokio_postgres::Config>().is_ok() {
            let problem = "has a parameter that is not known, or its value is malformed";
            ConfigError::because("DATABASE_URL", problem, PARAMETERS)
        } else {
            ConfigError::malformed("DATABASE_URL", URL)
        }
    })
}
