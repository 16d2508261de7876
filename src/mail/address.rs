//! One email address that SES can take.

use std::fmt;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use thiserror::Error;

use super::invisible::{is_invisible, trim_invisible};
use super::mailbox::is_atom;

/// An address with an ASCII local part and a domain in its ASCII form (punycode), as SES requires:
/// <https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_Destination.html>.
///
/// It has no `Display`, so that it can't slip into a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    whole: String,
    at: usize,
}

/// Why SES could not take a text as an address. It never repeats the text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AddressProblem {
    #[error("the address is empty")]
    Empty,
    #[error("the address has no `@` and domain")]
    NoDomain,
    #[error("there is more than one address")]
    MoreThanOne,
    #[error("the address has a control character")]
    ControlCharacter,
    #[error("the address has a space")]
    Space,
    #[error("the address has an invisible character")]
    InvisibleCharacter,
    #[error("the address is longer than 254 bytes")]
    TooLong,
    #[error("the part before the `@` is empty or longer than 64 bytes")]
    LocalPartLength,
    #[error("the part before the `@` is not ASCII, which SES does not support")]
    LocalPartNotAscii,
    #[error("the part before the `@` has a character that must be quoted")]
    LocalPartCharacter,
    #[error("the domain is not a valid host name")]
    Domain,
}

const MAX_LOCAL_PART: usize = 64;
const MAX_ADDRESS: usize = 254;

impl Address {
    /// # Errors
    /// Says what SES could not take. White space and invisible characters around the address are dropped: they come
    /// from copying it, and the email would be lost over them.
    pub fn parse(text: &str) -> Result<Self, AddressProblem> {
        let text = trim_invisible(text);
        if text.is_empty() {
            return Err(AddressProblem::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(AddressProblem::ControlCharacter);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(AddressProblem::NoDomain)?;
        if text.contains([',', ';']) || local.contains('@') {
            return Err(AddressProblem::MoreThanOne);
        }
        if text.chars().any(char::is_whitespace) {
            return Err(AddressProblem::Space);
        }
        // The conversion to punycode drops most of them in silence. It checks the two joiners, which names need.
        let is_joiner = |c| matches!(c, '\u{200C}' | '\u{200D}');
        if local.contains(is_invisible) || domain.contains(|c| is_invisible(c) && !is_joiner(c)) {
            return Err(AddressProblem::InvisibleCharacter);
        }
        check_local_part(local)?;
        if domain.is_empty() {
            return Err(AddressProblem::NoDomain);
        }
        let domain = ascii_domain(domain).ok_or(AddressProblem::Domain)?;
        let whole = format!("{local}@{domain}");
        if whole.len() > MAX_ADDRESS {
            return Err(AddressProblem::TooLong);
        }
        Ok(Self {
            at: local.len(),
            whole,
        })
    }

    pub fn as_str(&self) -> &str {
        &self.whole
    }

    pub fn domain(&self) -> &str {
        &self.whole[self.at + 1..]
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(..)")
    }
}

/// `atext` of RFC 5322 and dots. Dots are left to the receiver: some providers have given out addresses with
/// two in a row.
fn check_local_part(local: &str) -> Result<(), AddressProblem> {
    if local.is_empty() || local.len() > MAX_LOCAL_PART {
        return Err(AddressProblem::LocalPartLength);
    }
    if !local.is_ascii() {
        return Err(AddressProblem::LocalPartNotAscii);
    }
    if !local.bytes().all(|byte| byte == b'.' || is_atom(byte)) {
        return Err(AddressProblem::LocalPartCharacter);
    }
    Ok(())
}

fn ascii_domain(domain: &str) -> Option<String> {
    // Hyphens in third and fourth place are common in names of hosts, and only suspicious in a browser's bar.
    let ascii = Uts46::new()
        .to_ascii(
            domain.as_bytes(),
            AsciiDenyList::STD3,
            Hyphens::CheckFirstLast,
            DnsLength::Verify,
        )
        .ok()?
        .into_owned();
    // A name without a dot is a host of some local network, which SES can't reach.
    let labels = ascii.split('.').collect::<Vec<_>>();
    (labels.len() >= 2 && labels.iter().all(|label| !label.is_empty())).then_some(ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_international_domain_becomes_punycode() {
        let address = Address::parse("sam@bücher.example").unwrap();
        assert_eq!(address.as_str(), "sam@xn--bcher-kva.example");
        assert_eq!(address.domain(), "xn--bcher-kva.example");
    }

    #[test]
    fn ordinary_and_odd_addresses_are_kept_as_they_are() {
        for text in [
            "sam@example.com",
            "o'brien+jobs@mail.example.co.uk",
            "Sam.Smith@example.com",
            "a..b@example.com",
            "{weird}&ok@example.com",
            "sam@my--shop.com",
            "sam@r3---sn.example.com",
        ] {
            assert_eq!(Address::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(
            Address::parse(" sam@Example.COM ").unwrap().as_str(),
            "sam@example.com"
        );
    }

    #[test]
    fn what_is_invisible_around_an_address_is_dropped() {
        for around in [
            "\u{A0}",
            "\n",
            "\r\n",
            "\t",
            "\u{0}",
            "\u{7F}",
            "\u{85}",
            "\u{AD}",
            "\u{61C}",
            "\u{180E}",
            "\u{2003}",
            "\u{200B}",
            "\u{200C}",
            "\u{200D}",
            "\u{200E}",
            "\u{200F}",
            "\u{2028}",
            "\u{202A}",
            "\u{202E}",
            "\u{202F}",
            "\u{205F}",
            "\u{2060}",
            "\u{2066}",
            "\u{2069}",
            "\u{2800}",
            "\u{3000}",
            "\u{3164}",
            "\u{FE0F}",
            "\u{FEFF}",
            "\u{E0001}",
            " \u{FEFF}\t",
        ] {
            let address = Address::parse(&format!("{around}sam@example.com{around}"));
            assert_eq!(address.unwrap().as_str(), "sam@example.com", "{around:?}");
        }
    }

    #[test]
    fn what_is_invisible_inside_an_address_is_refused() {
        for text in [
            "sam@exam\u{200B}ple.com",
            "sam@exam\u{AD}ple.com",
            "sam@exam\u{200D}ple.com",
            "sam@exam\u{FE0F}ple.com",
            "sam@\u{202E}example.com",
            "sa\u{200B}m@example.com",
            "sam\u{2060}@example.com",
            "sam@example\u{A0}.com",
        ] {
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
        let long = format!(
            "sam@{}.example.com",
            [
                "a".repeat(60),
                "b".repeat(60),
                "c".repeat(60),
                "d".repeat(60)
            ]
            .join(".")
        );
        assert!(Address::parse(&long).is_err());
    }

    #[test]
    fn what_ses_cannot_take_is_refused_with_the_reason() {
        use AddressProblem::*;
        let long = format!("{}@example.com", "a".repeat(65));
        for (text, problem) in [
            ("", Empty),
            ("  ", Empty),
            ("sam", NoDomain),
            ("sam@", NoDomain),
            ("sam@localhost", Domain),
            ("@example.com", LocalPartLength),
            (long.as_str(), LocalPartLength),
            ("josé@example.com", LocalPartNotAscii),
            ("sam@example.com,eve@example.com", MoreThanOne),
            ("sam@example.com;eve@example.com", MoreThanOne),
            ("sam@example.com eve@example.com", MoreThanOne),
            ("sam@eve@example.com", MoreThanOne),
            ("sam@example.com\r\nBcc: eve@example.com", ControlCharacter),
            ("sam\0@example.com", ControlCharacter),
            ("sam smith@example.com", Space),
            ("Sam <sam@example.com>", Space),
            ("<sam@example.com>", LocalPartCharacter),
            ("\"sam\"@example.com", LocalPartCharacter),
            ("sam@exa_mple.com", Domain),
            ("sam@example..com", Domain),
            ("sam@.example.com", Domain),
            ("sam@example.com.", Domain),
            ("sam@-example.com", Domain),
            ("sam@[127.0.0.1]", Domain),
            ("sam@example.com>", Domain),
        ] {
            assert_eq!(Address::parse(text), Err(problem), "{text:?}");
        }
    }

    #[test]
    fn debug_output_shows_no_address() {
        let address = Address::parse("sam@example.com").unwrap();
        assert_eq!(format!("{address:?}"), "Address(..)");
    }
}
