//! A name and an address, as a From, Reply-To or To header has them.

use unicode_segmentation::UnicodeSegmentation as _;

use super::{Address, AddressProblem, encode_words, one_line, trim_invisible};

/// SES refuses a mailbox with more characters than this, as it is written: encoded words, quotes and backslashes
/// count, and all of them are ASCII.
const MAX_MAILBOX: usize = 320;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    name: Name,
    address: Address,
}

/// A display name on one line; empty for none. It has no `Display`, so that it can't slip into a log.
#[derive(Clone, PartialEq, Eq)]
struct Name(String);

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Name(..)")
    }
}

impl Mailbox {
    /// A name that is too long for SES beside this address is cut.
    pub fn new(name: &str, address: Address) -> Self {
        Self {
            name: Name(fitting(&one_line(name), &address)),
            address,
        }
    }

    /// Reads `address`, `Name <address>` or `"Name, with a comma" <address>`.
    ///
    /// # Errors
    /// Says what is wrong with the address.
    pub fn parse(text: &str) -> Result<Self, AddressProblem> {
        let text = trim_invisible(text);
        let Some((name, address)) = text
            .strip_suffix('>')
            .and_then(|text| text.rsplit_once('<'))
        else {
            return Ok(Self::new("", Address::parse(text)?));
        };
        let name = trim_invisible(name);
        let name = match name
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'))
        {
            Some(quoted) => quoted.replace("\\\"", "\"").replace("\\\\", "\\"),
            // An address in it: there are two, and a comma between them.
            None if name.contains(['<', '>', '@']) => return Err(AddressProblem::MoreThanOne),
            None => name.to_owned(),
        };
        Ok(Self::new(&name, Address::parse(address)?))
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The same name at another address.
    pub fn redirected(&self, address: Address) -> Self {
        Self::new(&self.name.0, address)
    }

    /// As SES takes it: the name as it is, quoted where RFC 5322 wants that, encoded where it is not ASCII.
    pub fn header_value(&self) -> String {
        header_value(&self.name.0, self.address.as_str())
    }
}

fn header_value(name: &str, address: &str) -> String {
    if name.is_empty() {
        return address.to_owned();
    }
    let encoded = encode_words(name);
    if encoded != name {
        format!("{encoded} <{address}>")
    } else if name.bytes().all(|byte| byte == b' ' || is_atom(byte)) {
        format!("{name} <{address}>")
    } else {
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{name}\" <{address}>")
    }
}

/// As much of the name as SES takes beside the address: whole graphemes, or whole characters where the first
/// grapheme is too long by itself.
fn fitting(name: &str, address: &Address) -> String {
    let fits = |name: &str| header_value(name, address.as_str()).len() <= MAX_MAILBOX;
    if fits(name) {
        return name.to_owned();
    }
    let longest = |ends: Vec<usize>| {
        ends.into_iter()
            .rev()
            .map(|end| name[..end].trim_end())
            .find(|name| !name.is_empty() && fits(name))
    };
    // The header is never shorter than the name.
    let near = |end: &usize| *end <= MAX_MAILBOX;
    longest(
        name.grapheme_indices(true)
            .map(|(end, _)| end)
            .take_while(near)
            .collect(),
    )
    .or_else(|| {
        longest(
            name.char_indices()
                .map(|(end, _)| end)
                .take_while(near)
                .collect(),
        )
    })
    .unwrap_or_default()
    .to_owned()
}

/// `atext` of RFC 5322.
pub(super) fn is_atom(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> String {
        Mailbox::new(name, Address::parse("sam@example.com").unwrap()).header_value()
    }

    #[test]
    fn a_name_arrives_as_that_one_name() {
        for name in [
            "Sam",
            "Müller, Anna",
            "Smith, Sam",
            "Sam \"Sammy\" Smith",
            "Sam (the candidate)",
            "back\\slash",
            "李小龙",
            "a@b.example <c@d.example>",
            "O'Brien; Pat: team",
            "=?utf-8?q?evil?=",
        ] {
            let header = named(name);
            assert!(header.is_ascii(), "{header}");
            let parsed = mailparse::addrparse_header(
                &mailparse::parse_header(format!("To: {header}\r\n").as_bytes())
                    .unwrap()
                    .0,
            )
            .unwrap();
            let single = parsed.extract_single_info().expect("one address");
            assert_eq!(single.display_name.as_deref(), Some(name), "{header}");
            assert_eq!(single.addr, "sam@example.com");
        }
    }

    #[test]
    fn a_line_break_in_a_name_becomes_a_space() {
        assert_eq!(
            named("Sam\r\nBcc: eve@example.com"),
            "\"Sam Bcc: eve@example.com\" <sam@example.com>"
        );
    }

    #[test]
    fn a_mailbox_is_never_longer_than_ses_takes() {
        let short = Address::parse("m.mustermann@inbox.example").unwrap();
        let long = format!(
            "{}@{}.{}.{}.example",
            "l".repeat(60),
            "a".repeat(60),
            "b".repeat(60),
            "c".repeat(60)
        );
        let long = Address::parse(&long).unwrap();
        for unit in [
            "Ж",
            "a",
            "\"",
            "\\",
            "(",
            "李",
            "🙂",
            "👩\u{200D}👩\u{200D}👧",
            "é",
            "e\u{301}",
            "=?",
            "Ж ",
            "=?UTF-8?B?",
            "ab, ",
        ] {
            for count in [1, 30, 90, 200, 400, 5000] {
                for address in [&short, &long] {
                    let name = unit.repeat(count);
                    let mailbox = Mailbox::new(&name, address.clone());
                    let header = mailbox.header_value();
                    assert!(header.len() <= 320, "{unit} {count}: {}", header.len());
                    assert!(one_line(&name).starts_with(&mailbox.name.0));
                    let moved = mailbox.redirected(long.clone()).header_value();
                    assert!(moved.len() <= 320, "{unit} {count}");
                }
            }
        }
    }

    #[test]
    fn a_long_name_keeps_whole_graphemes_and_as_many_as_fit() {
        let address = Address::parse("m.mustermann@inbox.example").unwrap();
        let family = "👩\u{200D}👩\u{200D}👧";
        let mailbox = Mailbox::new(&family.repeat(90), address.clone());
        assert!(!mailbox.name.0.is_empty());
        assert_eq!(mailbox.name.0.len() % family.len(), 0);
        let one = format!("e{}", "\u{301}".repeat(500));
        assert!(Mailbox::new(&one, address.clone()).name.0.starts_with('e'));
        let plain = Mailbox::new(&"a".repeat(400), address).header_value();
        assert_eq!(plain.len(), 320);
    }

    #[test]
    fn an_empty_name_leaves_the_address_alone() {
        assert_eq!(named(" \n "), "sam@example.com");
    }

    #[test]
    fn configured_mailboxes_are_read_with_and_without_a_name() {
        for (text, header) in [
            ("no-reply@example.com", "no-reply@example.com"),
            ("<no-reply@example.com>", "no-reply@example.com"),
            (
                "Job Board <no-reply@example.com>",
                "Job Board <no-reply@example.com>",
            ),
            (
                "\"Jobs, \\\"the\\\" Board\" <no-reply@example.com>",
                "\"Jobs, \\\"the\\\" Board\" <no-reply@example.com>",
            ),
            (
                "Börse <no-reply@börse.example>",
                "=?UTF-8?B?QsO2cnNl?= <no-reply@xn--brse-5qa.example>",
            ),
        ] {
            assert_eq!(Mailbox::parse(text).unwrap().header_value(), header);
        }
        assert!(Mailbox::parse("Job Board").is_err());
        assert!(Mailbox::parse("Job Board <no-reply>").is_err());
        assert!(Mailbox::parse("A <a@example.com>, B <b@example.com>").is_err());
    }
}
