//! No address in a log, even where a producer put it into a key or a status.

use std::borrow::Cow;
use std::net::Ipv4Addr;

const MASKED: &str = "***@***";

/// The at sign, as texts and links write it.
const AT_SIGNS: [&str; 9] = [
    "@", "\u{FF20}", "\u{FE6B}", "%40", "%2540", "&#64;", "&#x40;", "&commat;", "\\u0040",
];

/// The text with `***@***` for all that looks like an address. The rest stays, so that a line is found by what
/// surrounds the address in a key.
pub(crate) fn mask_addresses(text: &str) -> Cow<'_, str> {
    let mut masked = String::new();
    let mut rest = text;
    // What is searched next begins here, in `rest`: at signs before it belong to no address.
    let mut from = 0;
    while let Some((at, length)) = next_at(&rest[from..]).map(|(at, length)| (from + at, length)) {
        let end = at + length + domain_length(&rest[at + length..]);
        let start = local_start(&rest[..at]);
        if start == at || end == at + length || !is_host(&rest[at + length..end]) {
            from = at + length;
            continue;
        }
        masked.push_str(&rest[..start]);
        masked.push_str(MASKED);
        rest = &rest[end..];
        from = 0;
    }
    if masked.is_empty() && rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

fn next_at(text: &str) -> Option<(usize, usize)> {
    text.char_indices().find_map(|(place, _)| {
        let is_here = |sign: &&&str| starts_with_ignoring_case(&text[place..], sign);
        AT_SIGNS
            .iter()
            .find(is_here)
            .map(|sign| (place, sign.len()))
    })
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Where the part before the at sign begins.
fn local_start(before: &str) -> usize {
    for quote in ["\"", "%22"] {
        if let Some(quoted) = before.strip_suffix(quote) {
            return quoted.rfind(quote).unwrap_or(before.len() - quote.len());
        }
    }
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, c)| is_local(*c))
        .last()
        .map_or(before.len(), |(start, _)| start);
    start + number_length(&before[start..])
}

/// `/` and `|` may stand in an address, and are what separates the parts of a key far more often.
fn is_local(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && !c.is_whitespace()) || ".!#$%&'*+-=?^_`{}~".contains(c)
}

/// How much of `order-1001-sam` is the number that an event is found by, up to its last part that is a number or a
/// group of a UUID.
fn number_length(local: &str) -> usize {
    let mut length = 0;
    let mut start = 0;
    for (place, _) in local.match_indices(['-', '_']) {
        let part = &local[start..place];
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_group = matches!(part.len(), 4 | 8 | 12 | 32)
            && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            && part.bytes().any(|byte| byte.is_ascii_digit());
        start = place + 1;
        if is_number || is_group {
            length = start;
        }
    }
    length
}

fn domain_length(after: &str) -> usize {
    if after.starts_with('[') {
        return after.find(']').map_or(0, |end| end + 1);
    }
    let mut length = 0;
    while let Some(c) = after[length..].chars().next() {
        let encoded = encoded_byte(&after[length..]);
        if c.is_alphanumeric() || c == '-' || c == '.' || (!c.is_ascii() && !c.is_whitespace()) {
            length += c.len_utf8();
        } else if encoded.is_some_and(|byte| {
            byte.is_ascii_alphanumeric() || b".-".contains(&byte) || !byte.is_ascii()
        }) {
            length += 3;
        } else {
            break;
        }
    }
    let domain = after[..length].trim_end_matches(['.', '-']);
    // A top-level domain has no hyphen, but for those in punycode: what follows one is of the key.
    let last = domain.rfind('.').map_or(0, |dot| dot + 1);
    match domain[last..].find('-') {
        Some(hyphen) if last > 0 && !domain[last..].starts_with("xn--") => last + hyphen,
        _ => domain.len(),
    }
}

fn encoded_byte(text: &str) -> Option<u8> {
    u8::from_str_radix(text.strip_prefix('%')?.get(..2)?, 16).ok()
}

/// `package@1.2.3` has a version and not a host.
fn is_host(domain: &str) -> bool {
    domain.starts_with('[')
        || domain.chars().any(char::is_alphabetic)
        || domain.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_an_address_is_masked_and_the_rest_stays() {
        for (text, masked) in [
            ("sam@example.com", "***@***"),
            ("welcome:sam@example.com:offer", "welcome:***@***:offer"),
            ("order/7/sam+x@mail.example.co.uk/v2", "order/7/***@***/v2"),
            ("order-1001-sam@example.com", "order-1001-***@***"),
            ("sam@example.com-offer-3", "***@***-offer-3"),
            (
                "23e48c51-0000-4d1b-9c1e-0123456789ab_sam@example.com",
                "23e48c51-0000-4d1b-9c1e-0123456789ab_***@***",
            ),
            ("anna-maria@example.com", "***@***"),
            ("a|sam%40example.com|b", "a|***@***|b"),
            ("sam%2540example%2Ecom", "***@***"),
            (
                "<sam@example.com>, \"Eve\" <eve@example.org>.",
                "<***@***>, \"Eve\" <***@***>.",
            ),
            ("\"sam smith\"@example.com", "***@***"),
            ("%22sam%20smith%22%40example.com", "***@***"),
            ("k:\"sam\"@[127.0.0.1]", "k:***@***"),
            ("jörg@bücher.example", "***@***"),
            ("例え@例え.テスト", "***@***"),
            ("sam＠example.com", "***@***"),
            ("sam&#64;example.com", "***@***"),
            ("sam@xn--r8jz45g.xn--zckzah", "***@***"),
            ("sam@localhost", "***@***"),
            ("sam@127.0.0.1", "***@***"),
            ("a@b@example.com", "***@***@example.com"),
            ("o'brien@example.com.", "***@***."),
            (
                "arn:aws:ses:eu-west-1:1:identity/sam@example.com",
                "arn:aws:ses:eu-west-1:1:identity/***@***",
            ),
        ] {
            assert_eq!(mask_addresses(text), masked, "{text}");
        }
    }

    #[test]
    fn what_is_not_an_address_stays_as_it_is() {
        for text in [
            "",
            "order-1001",
            "@example.com",
            "sam@",
            "10 @ 5.00",
            "package@1.2.3",
            "100%",
            "%40",
            "arn:aws:sts::1:assumed-role/onemail/session",
            "23e48c51-0000-4d1b-9c1e-0123456789ab",
        ] {
            assert_eq!(mask_addresses(text), text);
        }
    }
}
