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
        .map(|cause| without_request(&cause.to_string()).to_owned())
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
}
