//! Whom the folder's query found, and whether they may be written to.

use serde_json::Value;
use thiserror::Error;

use crate::claim::Row;
use crate::config::RecipientPolicy;
use crate::mail::{Address, AddressProblem, Mailbox};

/// Whom an email is for.
#[derive(Debug)]
pub struct Recipient(Mailbox);

/// Why a row has no recipient that SES could take.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NoRecipient {
    #[error("recipient.sql returned no text column `to_address`")]
    NoColumn,
    #[error("{0}")]
    Address(#[from] AddressProblem),
}

impl Recipient {
    /// # Errors
    /// The row has no address that SES could take.
    pub fn of_row(row: &Row) -> Result<Self, NoRecipient> {
        let address = match row.get("to_address") {
            Some(Value::String(address)) => address.as_str(),
            Some(Value::Null) => "",
            _ => return Err(NoRecipient::NoColumn),
        };
        let name = row
            .get("to_name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Ok(Self(Mailbox::new(name, Address::parse(address)?)))
    }
}

/// Where an email goes, after the policy was asked.
#[derive(Debug, PartialEq, Eq)]
pub enum Destination {
    Recipient(Mailbox),
    /// To the configured address instead.
    Redirected(Mailbox),
    /// Not sent.
    Withheld,
}

pub fn destination(recipient: Recipient, policy: &RecipientPolicy) -> Destination {
    let Recipient(mailbox) = recipient;
    match policy {
        RecipientPolicy::Everyone => Destination::Recipient(mailbox),
        RecipientPolicy::Listed { allowed, .. }
            if allowed
                .iter()
                .any(|allowed| allowed.admits(mailbox.address())) =>
        {
            Destination::Recipient(mailbox)
        }
        RecipientPolicy::Listed {
            redirect: Some(redirect),
            ..
        } => Destination::Redirected(mailbox.redirected(redirect.clone())),
        RecipientPolicy::Listed { redirect: None, .. } => Destination::Withheld,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(list: &str, redirect: &str) -> RecipientPolicy {
        let variables = [
            ("RECIPIENT_ALLOW_LIST", list),
            ("RECIPIENT_REDIRECT", redirect),
        ];
        RecipientPolicy::read(&variables.into_iter().collect()).unwrap()
    }

    fn destination_of(address: &str, policy: &RecipientPolicy) -> Destination {
        let row = json!({ "to_address": address, "to_name": "Sam" });
        let recipient = Recipient::of_row(row.as_object().unwrap()).unwrap();
        destination(recipient, policy)
    }

    fn sam_at(address: &str) -> Mailbox {
        Mailbox::new("Sam", Address::parse(address).unwrap())
    }

    #[test]
    fn a_recipient_on_the_list_is_written_to() {
        let policy = policy("@example.com, Sam@example.org,@bücher.example", "");
        for address in [
            "anyone@EXAMPLE.com",
            "sam@example.org",
            "anyone@xn--bcher-kva.example",
        ] {
            assert_eq!(
                destination_of(address, &policy),
                Destination::Recipient(sam_at(address))
            );
        }
        for address in ["eve@example.org", "anyone@sub.example.com"] {
            assert_eq!(destination_of(address, &policy), Destination::Withheld);
        }
    }

    #[test]
    fn with_a_redirect_its_address_gets_what_others_would_have_got() {
        let policy = policy("@example.com", "team@example.com");
        assert_eq!(
            destination_of("eve@example.org", &policy),
            Destination::Redirected(sam_at("team@example.com"))
        );
    }

    #[test]
    fn without_a_list_everyone_is_written_to() {
        assert_eq!(
            destination_of("eve@example.org", &policy("", "")),
            Destination::Recipient(sam_at("eve@example.org"))
        );
    }

    #[test]
    fn a_redirect_without_a_list_is_refused_at_start() {
        let variables = [("RECIPIENT_REDIRECT", "team@example.com")];
        let error = RecipientPolicy::read(&variables.into_iter().collect()).unwrap_err();
        assert!(error.to_string().starts_with("RECIPIENT_REDIRECT "));
    }

    /// As the environment reads bytes that are no UTF-8: taken for unset, everyone would be written to.
    #[test]
    fn a_list_that_is_not_utf8_is_refused_at_start() {
        let variables = [("RECIPIENT_ALLOW_LIST", "@example.org\u{FFFD}")];
        let error = RecipientPolicy::read(&variables.into_iter().collect()).unwrap_err();
        assert!(error.to_string().starts_with("RECIPIENT_ALLOW_LIST "));
    }

    #[test]
    fn a_row_without_an_address_has_no_recipient() {
        for (row, problem) in [
            (json!({}), NoRecipient::NoColumn),
            (json!({ "to_address": 7 }), NoRecipient::NoColumn),
            (
                json!({ "to_address": null }),
                NoRecipient::Address(AddressProblem::Empty),
            ),
            (
                json!({ "to_address": "" }),
                NoRecipient::Address(AddressProblem::Empty),
            ),
        ] {
            let error = Recipient::of_row(row.as_object().unwrap()).unwrap_err();
            assert_eq!(error, problem);
        }
    }
}
