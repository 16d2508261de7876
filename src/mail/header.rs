//! Text in mail headers: one line, and ASCII on the wire.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::visible;

/// RFC 2047 allows an encoded word 75 characters; `=?UTF-8?B??=` and base64 leave this many bytes of text.
const BYTES_PER_WORD: usize = 45;

/// The text on one line: line breaks and other control characters become spaces, runs of white space one, and
/// directions and invisible characters are dropped.
///
/// A line break in a value would begin a new header, and a direction turn around the headers beside it.
pub fn one_line(text: &str) -> String {
    visible(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Text that is not printable ASCII as encoded words of RFC 2047, separated by spaces; other text as it is.
pub fn encode_words(text: &str) -> Cow<'_, str> {
    // Text that looks like an encoded word would be decoded by the reader, so it is encoded too.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && !text.contains("=?") {
        return Cow::Borrowed(text);
    }
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.floor_char_boundary(BYTES_PER_WORD));
        words.push(format!("=?UTF-8?B?{}?=", STANDARD.encode(word)));
        rest = after;
    }
    Cow::Owned(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_control_characters_become_one_space() {
        assert_eq!(
            one_line(" Hello\r\nBcc: eve@example.com\u{2028}\u{0}  there\t"),
            "Hello Bcc: eve@example.com there"
        );
    }

    #[test]
    fn a_direction_in_a_header_is_dropped() {
        assert_eq!(
            one_line("An offer from \u{202E}emcA\u{2066}, Inc."),
            "An offer from emcA, Inc."
        );
        assert_eq!(one_line("\u{FEFF}Acme\u{200B}"), "Acme");
    }

    #[test]
    fn encoded_words_are_short_and_decode_to_the_same_text() {
        for text in [
            "José",
            "李小龙",
            "=?UTF-8?Q?not_a_name?=",
            "Ștefan Ηλίας العربية 🙂 and a name that goes on for longer than a single word of RFC 2047 may",
        ] {
            let encoded = encode_words(text);
            assert!(encoded.split(' ').all(|word| word.len() <= 75), "{encoded}");
            let header = format!("Subject: {encoded}\r\n");
            let (header, _) = mailparse::parse_header(header.as_bytes()).unwrap();
            assert_eq!(header.get_value(), text);
        }
        assert_eq!(encode_words("Plain, \"quoted\""), "Plain, \"quoted\"");
    }
}
