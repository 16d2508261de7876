//! Where Postgres is, and how much of its identity is checked.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::{ConfigError, Env};

const URL: &str = "postgres://user:password@host:5432/database, user and password percent-encoded";
const SSL_MODE: &str = "disable, prefer, require, verify-ca or verify-full";

/// How TLS is used, in libpq's words: <https://www.postgresql.org/docs/current/libpq-ssl.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SslRootCert {
    /// Nothing was said: where a mode verifies, the roots that browsers trust.
    Unset,
    /// libpq's word `system`: the same roots, and nothing less than `verify-full`.
    System,
    /// A PEM file.
    File(PathBuf),
}

/// Read from `DATABASE_URL`, `PGSSLMODE` and `PGSSLROOTCERT`.
#[derive(Debug)]
pub struct DatabaseConfig {
    /// All but TLS. tokio-postgres refuses `verify-full` and `sslrootcert`, so both are taken out of the URL.
    pub connection: tokio_postgres::Config,
    pub ssl_mode: SslMode,
    pub ssl_root_cert: SslRootCert,
}

impl DatabaseConfig {
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        for variable in ["DATABASE_SECRET_ARN", "DATABASE_IAM_AUTH"] {
            if env.get(variable).is_some_and(|value| value != "false") {
                return Err(ConfigError::because(
                    variable,
                    "is set, which is not built yet",
                    "DATABASE_URL alone",
                ));
            }
        }
        let url = env.required("DATABASE_URL", URL)?;
        let (url, tls) = split_tls_parameters(url)?;
        let ssl_mode = match tls.mode {
            Some(mode) => Some(mode),
            None => env.parsed("PGSSLMODE", SSL_MODE, ssl_mode)?,
        };
        let ssl_root_cert = tls
            .root_cert
            .or_else(|| env.get("PGSSLROOTCERT").map(ssl_root_cert))
            .unwrap_or(SslRootCert::Unset);
        let ssl_mode = match (ssl_mode, &ssl_root_cert) {
            (None | Some(SslMode::VerifyFull), SslRootCert::System) => SslMode::VerifyFull,
            (Some(_), SslRootCert::System) => {
                return Err(ConfigError::because(
                    "DATABASE_URL",
                    "or PGSSLMODE has an sslmode that is too weak for sslrootcert=system",
                    "sslmode=verify-full",
                ));
            }
            // As libpq does: whoever names a root certificate wants it checked.
            (Some(SslMode::Require), SslRootCert::File(_)) => SslMode::VerifyCa,
            (mode, _) => mode.unwrap_or(SslMode::Prefer),
        };
        Ok(Self {
            connection: connection(&url)?,
            ssl_mode,
            ssl_root_cert,
        })
    }
}

#[derive(Debug, Default)]
struct TlsParameters {
    mode: Option<SslMode>,
    root_cert: Option<SslRootCert>,
}

fn split_tls_parameters(url: &str) -> Result<(String, TlsParameters), ConfigError> {
    let mut tls = TlsParameters::default();
    let Some((base, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), tls));
    };
    let mut others = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode_str(value).decode_utf8_lossy();
        match name {
            "sslmode" => {
                tls.mode = Some(ssl_mode(&value).ok_or_else(|| {
                    ConfigError::because("DATABASE_URL", "has an unknown sslmode", SSL_MODE)
                })?);
            }
            "sslrootcert" => tls.root_cert = Some(ssl_root_cert(&value)),
            _ => others.push(parameter),
        }
    }
    if others.is_empty() {
        return Ok((base.to_owned(), tls));
    }
    Ok((format!("{base}?{}", others.join("&")), tls))
}

fn connection(url: &str) -> Result<tokio_postgres::Config, ConfigError> {
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(ConfigError::malformed("DATABASE_URL", URL));
    }
    let authority = url
        .split_once("://")
        .map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default())
        .unwrap_or_default();
    if authority.matches('@').count() > 1 || url.contains('#') {
        // Such a URL parses, but its password ends up in the host name and so in error messages.
        return Err(ConfigError::because(
            "DATABASE_URL",
            "has an `@` or `#` that is not percent-encoded",
            URL,
        ));
    }
    let config: tokio_postgres::Config = url.parse().map_err(|_| {
        // The parser's own message can quote the URL.
        ConfigError::malformed("DATABASE_URL", URL)
    })?;
    if config.get_hosts().is_empty() {
        return Err(ConfigError::because("DATABASE_URL", "names no host", URL));
    }
    if config.get_user().is_none() {
        return Err(ConfigError::because("DATABASE_URL", "names no user", URL));
    }
    Ok(config)
}

fn ssl_mode(value: &str) -> Option<SslMode> {
    match value {
        "disable" => Some(SslMode::Disable),
        "prefer" => Some(SslMode::Prefer),
        "require" => Some(SslMode::Require),
        "verify-ca" => Some(SslMode::VerifyCa),
        "verify-full" => Some(SslMode::VerifyFull),
        _ => None,
    }
}

fn ssl_root_cert(value: &str) -> SslRootCert {
    match value {
        "system" => SslRootCert::System,
        path => SslRootCert::File(path.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<DatabaseConfig, ConfigError> {
        DatabaseConfig::read(&variables.iter().copied().collect())
    }

    #[test]
    fn a_percent_encoded_password_is_decoded_and_tls_parameters_are_taken_out() {
        let config = read(&[(
            "DATABASE_URL",
            "postgres://worker:p%40s%23s@db.example.com:6432/jobs?sslmode=verify-full&connect_timeout=2&sslrootcert=%2Fcerts%2Fca.pem",
        )])
        .unwrap();
        assert_eq!(config.connection.get_password(), Some(b"p@s#s".as_slice()));
        assert_eq!(config.ssl_mode, SslMode::VerifyFull);
        assert_eq!(
            config.ssl_root_cert,
            SslRootCert::File("/certs/ca.pem".into())
        );
        assert_eq!(
            config.connection.get_connect_timeout(),
            Some(&std::time::Duration::from_secs(2))
        );
    }

    #[test]
    fn the_environment_fills_what_the_url_leaves_open() {
        let config = read(&[
            ("DATABASE_URL", "postgres://worker@db/jobs?sslmode=require"),
            ("PGSSLMODE", "disable"),
            ("PGSSLROOTCERT", "/certs/ca.pem"),
        ])
        .unwrap();
        assert_eq!(config.ssl_mode, SslMode::VerifyCa);
        assert_eq!(
            config.ssl_root_cert,
            SslRootCert::File("/certs/ca.pem".into())
        );
        let config = read(&[("DATABASE_URL", "postgres://worker@db/jobs")]).unwrap();
        assert_eq!(config.ssl_mode, SslMode::Prefer);
    }

    #[test]
    fn require_with_a_root_certificate_verifies_it() {
        let config = read(&[(
            "DATABASE_URL",
            "postgres://worker@db/jobs?sslmode=require&sslrootcert=ca.pem",
        )])
        .unwrap();
        assert_eq!(config.ssl_mode, SslMode::VerifyCa);
    }

    #[test]
    fn the_system_roots_are_checked_in_full_or_not_at_all() {
        let url = "postgres://worker@db/jobs?sslrootcert=system";
        let config = read(&[("DATABASE_URL", url)]).unwrap();
        assert_eq!(config.ssl_mode, SslMode::VerifyFull);
        assert_eq!(config.ssl_root_cert, SslRootCert::System);
        for weaker in ["disable", "prefer", "require", "verify-ca"] {
            let url = format!("{url}&sslmode={weaker}");
            assert!(read(&[("DATABASE_URL", &url)]).is_err(), "{weaker}");
        }
    }

    #[test]
    fn an_error_names_the_variable_and_shows_no_secret() {
        for url in [
            "mysql://worker:hunter2@db/jobs",
            "postgres://worker:hunter2@x@db/jobs",
            "postgres://worker:hunter2#@db/jobs",
            "postgres://worker:hunter2@db/jobs?sslmode=maybe",
            "postgres://worker:hunter2@db:port/jobs",
            "postgres://",
        ] {
            let message = read(&[("DATABASE_URL", url)]).unwrap_err().to_string();
            assert!(message.starts_with("DATABASE_URL "), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
        let message = read(&[]).unwrap_err().to_string();
        assert_eq!(message, format!("DATABASE_URL is not set: expected {URL}"));
    }
}
