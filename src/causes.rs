//! What an error says together with its causes.

use std::error::Error;

/// The error, what caused it, and so on.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// In one line, as far as it may be logged.
pub fn told(error: &(dyn Error + 'static)) -> String {
    causes(error)
        .map(|cause| without_addresses(without_request(&cause.to_string())))
        .collect::<Vec<_>>()
        .join(": ")
}

/// The SDK quotes the whole request, the email or the event in it, when it can't be addressed: "failed to apply endpoint
/// `localhost:4566` to request `Request { body: ...".
fn without_request(text: &str) -> &str {
    match text.find("Request {") {
        Some(place) => text[..place].trim_end_matches(['`', ' ']),
        None => text,
    }
}

/// A message of an AWS service, as far as it may be logged.
///
/// SES quotes whom a message is about at its end, names too: "... failed the check in region EU-WEST-1: Sam
/// <sam@example.com>". A name can hold anything, so the message is cut at the first place where one may begin. Access
/// denied messages quote ARNs, which may contain an address; only that word is replaced.
pub fn without_addresses(message: &str) -> String {
    let quotes = |word: &str| word.contains('@') && !word.starts_with("arn:");
    if message.split_whitespace().any(quotes) {
        let from = message.find("failed the check").unwrap_or(0);
        let kept = message[from..]
            .find(": ")
            .map(|end| &message[..from + end])
            .filter(|kept| !kept.contains('@'));
        return kept.unwrap_or("its message quotes an address").to_owned();
    }
    message
        .split_whitespace()
        .map(|word| {
            if word.contains('@') {
                "(an ARN with an address)"
            } else {
                word
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_never_quoted() {
        let quoting =
            "failed to apply endpoint `localhost:4566` to request `Request { body: Sam }`";
        assert_eq!(
            without_request(quoting),
            "failed to apply endpoint `localhost:4566` to request"
        );
        assert_eq!(
            without_request("missing signing region"),
            "missing signing region"
        );
    }

    #[test]
    fn what_ses_quotes_of_addresses_and_names_is_cut_off() {
        for (message, kept) in [
            (
                "Maximum sending rate exceeded.",
                "Maximum sending rate exceeded.",
            ),
            (
                "Email address is not verified. The following identities failed the check in region \
                 EU-WEST-1: Sam Smith <sam@example.com>, eve@example.com",
                "Email address is not verified. The following identities failed the check in region \
                 EU-WEST-1",
            ),
            (
                "User: arn:aws:sts::1:role is not authorized to perform: ses:SendEmail on resource: \
                 arn:aws:ses:eu-west-1:1:identity/sam@example.com",
                "User: arn:aws:sts::1:role is not authorized to perform: ses:SendEmail on resource: \
                 (an ARN with an address)",
            ),
            (
                "The following identities failed the check in region EU-WEST-1: Anna Karenina: Director \
                 <anna@example.com>",
                "The following identities failed the check in region EU-WEST-1",
            ),
            (
                "Illegal address: Anna: Director <anna@example.com>",
                "Illegal address",
            ),
            (
                "sam@example.com: not verified",
                "its message quotes an address",
            ),
            (
                "Sam <sam@example.com> is blocked",
                "its message quotes an address",
            ),
        ] {
            assert_eq!(without_addresses(message), kept);
        }
    }
}
