//! A name and an address, as a From, Reply-To or To header has them.

use super::{Address, AddressProblem, encode_words, one_line};

/// Beyond this a name is cut: longer ones are mistakes or attacks, and SES bounds the length of a header.
const MAX_NAME: usize = 200;

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
    pub fn new(name: &str, address: Address) -> Self {
        let mut name = one_line(name);
        name.truncate(name.floor_char_boundary(MAX_NAME));
        Self {
            name: Name(name),
            address,
        }
    }

    /// Reads `address`, `Name <address>` or `"Name, with a comma" <address>`.
    ///
    /// # Errors
    /// Says what is wrong with the address.
    pub fn parse(text: &str) -> Result<Self, AddressProblem> {
        let text = text.trim();
        let Some((name, address)) = text
            .strip_suffix('>')
            .and_then(|text| text.rsplit_once('<'))
        else {
            return Ok(Self::new("", Address::parse(text)?));
        };
        let name = name.trim();
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
        Self {
            name: self.name.clone(),
            address,
        }
    }

    /// As SES takes it: the name as it is, quoted where RFC 5322 wants that, encoded where it is not ASCII.
    pub fn header_value(&self) -> String {
        let name = &self.name.0;
        let address = self.address.as_str();
        if name.is_empty() {
            return address.to_owned();
        }
        let encoded = encode_words(name);
        if encoded != name.as_str() {
            format!("{encoded} <{address}>")
        } else if name.bytes().all(|byte| byte == b' ' || is_atom(byte)) {
            format!("{name} <{address}>")
        } else {
            let name = name.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{name}\" <{address}>")
        }
    }
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
