//! One binary, four functions: which of them this process is.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The function that Lambda's `_HANDLER`, or the first argument by hand, names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Notify,
    Feedback,
    Cleanup,
    Migrate,
}

impl Function {
    pub const ALL: [Self; 4] = [Self::Notify, Self::Feedback, Self::Cleanup, Self::Migrate];

    pub fn name(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::Feedback => "feedback",
            Self::Cleanup => "cleanup",
            Self::Migrate => "migrate",
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Error)]
#[error("`{0}` is no function of onemail: expected one of notify, feedback, cleanup, migrate")]
pub struct UnknownFunction(String);

impl FromStr for Function {
    type Err = UnknownFunction;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|function| function.name() == name)
            .ok_or_else(|| UnknownFunction(name.to_owned()))
    }
}
