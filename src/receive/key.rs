//! The idempotency key: the identity of the change that an event tells of.

use std::fmt;

use crate::emails::is_key;

/// 1 to 64 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    pub fn parse(text: &str) -> Option<Self> {
        is_key(text).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_1_to_64_visible_ascii_characters() {
        for key in ["1", "test-missing", "order:7/a+b~!", &"k".repeat(64)] {
            assert_eq!(IdempotencyKey::parse(key).unwrap().as_str(), key);
        }
        for text in ["", " ", "a b", "a\n", "é", "a\u{7f}", &"k".repeat(65)] {
            assert_eq!(IdempotencyKey::parse(text), None, "{text:?}");
        }
    }
}
