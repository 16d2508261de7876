//! The tags by which a notification from SES is matched with its event.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::receive::{Event, PayloadHash};

/// Names and values of SES's `EmailTags`, of which each takes letters, digits, `_` and `-` alone:
/// <https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_MessageTag.html>.
pub(super) fn tags(event: &Event<'_>) -> Vec<(&'static str, String)> {
    // An event type has no `-`, so that it can be read back.
    let event_type = event.event_type().replace('.', "-");
    vec![("event_type", event_type), event_id(event.key.as_str())]
}

/// The tags by which a notification is told apart from one of another ledger, or of another event under the same key.
/// `ledger`: the id that the ledger's schema keeps, of characters that a tag takes.
pub fn ledger_tags(ledger: &str, payload: PayloadHash) -> [(&'static str, String); 2] {
    [
        ("ledger", ledger.to_owned()),
        ("payload_sha256", URL_SAFE_NO_PAD.encode(payload.0)),
    ]
}

fn event_id(key: &str) -> (&'static str, String) {
    let fits = key
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if fits {
        ("event_id", key.to_owned())
    } else {
        ("event_id_b64", URL_SAFE_NO_PAD.encode(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_ses_takes_is_the_tag_and_any_other_is_encoded() {
        assert_eq!(
            event_id("order-1001_a"),
            ("event_id", "order-1001_a".into())
        );
        assert_eq!(event_id("a.b"), ("event_id_b64", "YS5i".into()));
        assert_eq!(event_id("??>"), ("event_id_b64", "Pz8-".into()));
    }
}
