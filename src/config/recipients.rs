//! Who may be written to outside production, so that an accident reaches no customer.

use crate::mail::{Address, trim_invisible};

use super::{ConfigError, Env};

/// Read from `RECIPIENT_ALLOW_LIST` and `RECIPIENT_REDIRECT`.
#[derive(Debug)]
pub enum RecipientPolicy {
    /// Production: no list is set.
    Everyone,
    Listed {
        allowed: Vec<Allowed>,
        redirect: Option<Address>,
    },
}

#[derive(Debug)]
pub enum Allowed {
    Address(Address),
    Domain(String),
}

impl RecipientPolicy {
    pub fn read(env: &Env) -> Result<Self, ConfigError> {
        let allowed = env.parsed(
            "RECIPIENT_ALLOW_LIST",
            "addresses or @domains, separated by commas, such as `@example.com,me@example.org`, without `*`",
            |value| {
                value
                    .split(',')
                    .map(trim_invisible)
                    .filter(|entry| !entry.is_empty())
                    .map(Allowed::parse)
                    .collect::<Option<Vec<_>>>()
                    .filter(|allowed| !allowed.is_empty())
            },
        )?;
        let redirect = env
            .get("RECIPIENT_REDIRECT")
            .map(Address::parse)
            .transpose()
            .map_err(|problem| {
                let problem = format!("is malformed ({problem})");
                ConfigError::because("RECIPIENT_REDIRECT", problem, "one email address")
            })?;
        match (allowed, redirect) {
            (Some(allowed), redirect) => Ok(Self::Listed { allowed, redirect }),
            (None, None) => Ok(Self::Everyone),
            // Ignoring it would write to everyone, which the variable was set to prevent.
            (None, Some(_)) => Err(ConfigError::because(
                "RECIPIENT_REDIRECT",
                "is set while RECIPIENT_ALLOW_LIST is not",
                "both, or neither",
            )),
        }
    }
}

impl Allowed {
    fn parse(entry: &str) -> Option<Self> {
        match entry.strip_prefix('@') {
            // Through an address, so that the list and the recipients are normalised in one way.
            Some(domain) => Address::parse(&format!("any@{domain}"))
                .ok()
                .map(|address| Self::Domain(address.domain().to_owned())),
            // A pattern would match no address, and what is withheld is final.
            None if entry.contains('*') => None,
            None => Address::parse(entry).ok().map(Self::Address),
        }
    }

    pub fn admits(&self, address: &Address) -> bool {
        match self {
            // Mail systems treat the local part without regard to case, and a list is written by people.
            Self::Address(allowed) => allowed.as_str().eq_ignore_ascii_case(address.as_str()),
            Self::Domain(domain) => domain == address.domain(),
        }
    }
}
