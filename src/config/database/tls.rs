//! How TLS is used, in libpq's words: <https://www.postgresql.org/docs/current/libpq-ssl.html>.

use std::path::PathBuf;

use crate::config::{ConfigError, Env};

pub(super) const SSL_MODE: &str = "disable, prefer, require, verify-ca or verify-full";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Whose word counts for a server's certificate, where a mode verifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SslRootCert {
    /// Nothing was said: the roots that browsers trust, which RDS Proxy's certificates come from, and Amazon RDS's.
    Unset,
    /// libpq's word `system`: the roots that browsers trust, and nothing less than `verify-full`.
    System,
    /// Our word `rds`: Amazon RDS's alone.
    Rds,
    /// A PEM file.
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    pub mode: SslMode,
    pub root_cert: SslRootCert,
}

/// What one source, such as the URL, says of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsWish {
    pub mode: Option<SslMode>,
    pub root_cert: Option<SslRootCert>,
}

impl TlsWish {
    pub(super) fn of_environment(env: &Env) -> Result<Self, ConfigError> {
        Ok(Self {
            mode: env.parsed("PGSSLMODE", SSL_MODE, SslMode::parse)?,
            root_cert: env.get("PGSSLROOTCERT").map(SslRootCert::parse),
        })
    }

    /// This, and what it leaves open from another source.
    pub fn or(self, other: &Self) -> Self {
        Self {
            mode: self.mode.or(other.mode),
            root_cert: self.root_cert.or_else(|| other.root_cert.clone()),
        }
    }

    /// What it comes to, as libpq has it; `variable` is where it was said.
    ///
    /// # Errors
    /// `system` with a mode that would make nothing of it.
    pub fn settle(self, variable: &'static str) -> Result<TlsConfig, ConfigError> {
        let root_cert = self.root_cert.unwrap_or(SslRootCert::Unset);
        let mode = match (self.mode, &root_cert) {
            (None | Some(SslMode::VerifyFull), SslRootCert::System) => SslMode::VerifyFull,
            (Some(_), SslRootCert::System) => {
                return Err(ConfigError::because(
                    variable,
                    "or PGSSLMODE has an sslmode that is too weak for sslrootcert=system",
                    "sslmode=verify-full",
                ));
            }
            // As libpq does: whoever names a root certificate wants it checked.
            (Some(SslMode::Require), SslRootCert::Rds | SslRootCert::File(_)) => SslMode::VerifyCa,
            (mode, _) => mode.unwrap_or(SslMode::Prefer),
        };
        Ok(TlsConfig { mode, root_cert })
    }
}

impl SslMode {
    pub fn parse(value: &str) -> Option<Self> {
        match value {
            "disable" => Some(Self::Disable),
            "prefer" => Some(Self::Prefer),
            "require" => Some(Self::Require),
            "verify-ca" => Some(Self::VerifyCa),
            "verify-full" => Some(Self::VerifyFull),
            _ => None,
        }
    }
}

impl SslRootCert {
    pub fn parse(value: &str) -> Self {
        match value {
            "" => Self::Unset,
            "system" => Self::System,
            "rds" => Self::Rds,
            path => Self::File(path.into()),
        }
    }
}
