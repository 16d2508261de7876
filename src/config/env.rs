//! Reading environment variables, with errors that name the variable and never show its value.

use std::collections::HashMap;

use thiserror::Error;

/// A snapshot of the environment. An empty value counts as unset, since a template that passes an optional
/// parameter through can only pass an empty string.
#[derive(Debug, Default)]
pub struct Env(HashMap<String, String>);

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{variable} {problem}: expected {expected}")]
pub struct ConfigError {
    variable: &'static str,
    problem: String,
    expected: &'static str,
}

impl ConfigError {
    pub fn missing(variable: &'static str, expected: &'static str) -> Self {
        Self::because(variable, "is not set", expected)
    }

    pub fn malformed(variable: &'static str, expected: &'static str) -> Self {
        Self::because(variable, "is malformed", expected)
    }

    /// `problem` continues a sentence that the variable's name begins; it must not contain a secret.
    pub fn because(
        variable: &'static str,
        problem: impl Into<String>,
        expected: &'static str,
    ) -> Self {
        Self {
            variable,
            problem: problem.into(),
            expected,
        }
    }
}

impl Env {
    /// The environment of this process. What isn't UTF-8 in a value becomes `\u{FFFD}`, which no value takes: it
    /// must not count as unset, least of all a list of who may be written to.
    pub fn of_process() -> Self {
        std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .collect()
    }

    pub fn get(&self, variable: &str) -> Option<&str> {
        self.0
            .get(variable)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    }

    pub fn required(
        &self,
        variable: &'static str,
        expected: &'static str,
    ) -> Result<&str, ConfigError> {
        self.get(variable)
            .ok_or_else(|| ConfigError::missing(variable, expected))
    }

    /// The value as `parse` understands it, or `None` where it is unset.
    pub fn parsed<T>(
        &self,
        variable: &'static str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        self.get(variable)
            .map(|value| parse(value).ok_or_else(|| ConfigError::malformed(variable, expected)))
            .transpose()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}
