//! The form in which RDS writes a secret:
//! <https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_secret_json_structure.html>.

use serde_json::{Map, Value};

use crate::config::{SecretLogin, SslMode, SslRootCert, TlsWish};
use crate::database::login::Login;

use super::SecretError;

const EXPECTED: &str = "expected what RDS writes, \
    {\"username\": ..., \"password\": ..., \"host\": ..., \"port\": 5432, \"dbname\": ...}, where what DATABASE_URL \
    says of the server may be left out";

/// What the secret says. RDS's own secret of a master user has no more than `username` and `password`.
pub(super) struct Form {
    username: String,
    password: String,
    host: Option<String>,
    port: Option<u16>,
    dbname: Option<String>,
    tls: TlsWish,
}

impl Form {
    /// No error quotes a value: it may be the password.
    pub fn parse(secret: &str) -> Result<Self, SecretError> {
        let Ok(Value::Object(fields)) = serde_json::from_str(secret) else {
            return Err(malformed("is no JSON object"));
        };
        let required =
            |name| text(&fields, name)?.ok_or_else(|| malformed(&format!("has no `{name}`")));
        let mode = text(&fields, "sslmode")?
            .map(|mode| SslMode::parse(&mode).ok_or_else(|| malformed("has an unknown `sslmode`")))
            .transpose()?;
        Ok(Self {
            username: required("username")?,
            password: required("password")?,
            host: text(&fields, "host")?,
            port: port(&fields)?,
            dbname: text(&fields, "dbname")?,
            tls: TlsWish {
                mode,
                root_cert: text(&fields, "sslrootcert")?
                    .as_deref()
                    .map(SslRootCert::parse),
            },
        })
    }
}

/// The secret says who we are. Where the server is, `DATABASE_URL` says if it is set, say with the address of a proxy,
/// and the secret what the URL leaves open.
pub(super) fn login(
    form: Form,
    mut settings: tokio_postgres::Config,
    secret: &SecretLogin,
) -> Result<Login, SecretError> {
    settings.user(form.username).password(form.password);
    if settings.get_hosts().is_empty() {
        settings.host(form.host.ok_or_else(|| malformed("has no `host`"))?);
        if let (Some(port), []) = (form.port, settings.get_ports()) {
            settings.port(port);
        }
    }
    if settings.get_dbname().is_none() {
        settings.dbname(form.dbname.ok_or_else(|| malformed("has no `dbname`"))?);
    }
    let tls = secret
        .tls_of_url
        .clone()
        .or(&form.tls)
        .or(&secret.tls_of_environment)
        .settle("DATABASE_SECRET_ARN")
        .map_err(|error| SecretError::Malformed(error.to_string()))?;
    Login::new(settings, &tls).map_err(|error| SecretError::Malformed(format!("{error:#}")))
}

/// An empty one counts as missing.
fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, SecretError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(malformed(&format!("has a `{name}` that is no string"))),
    }
}

fn port(fields: &Map<String, Value>) -> Result<Option<u16>, SecretError> {
    let port = match fields.get("port") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(port)) if port.is_empty() => return Ok(None),
        Some(Value::String(port)) => port.parse().ok(),
        Some(port) => port.as_u64().and_then(|port| u16::try_from(port).ok()),
    };
    match port.filter(|port| *port > 0) {
        Some(port) => Ok(Some(port)),
        None => Err(malformed("has a `port` that is none")),
    }
}

fn malformed(problem: &str) -> SecretError {
    SecretError::Malformed(format!("the secret {problem}: {EXPECTED}"))
}
