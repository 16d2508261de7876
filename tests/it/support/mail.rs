//! A `SendEmail` request as SES got it, and its addresses as a reader of mail would decode them.

use std::time::Instant;

use mailparse::MailAddr;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct SendEmail {
    pub body: Value,
    /// Whether the email left.
    pub accepted: bool,
    /// When the request had arrived.
    pub at: Instant,
    /// The message id that SES gave it, whether or not the reply told.
    pub message_id: String,
}

/// A decoded address: the display name, if there is one, and the bare address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mailbox {
    pub name: Option<String>,
    pub address: String,
}

impl Mailbox {
    pub fn named(name: &str, address: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            address: address.to_owned(),
        }
    }

    pub fn bare(address: &str) -> Self {
        Self {
            name: None,
            address: address.to_owned(),
        }
    }
}

impl SendEmail {
    /// The idempotency key in the tags of a request, in whichever of its two forms.
    pub fn event_id_in(body: &Value) -> String {
        use base64::Engine;
        let plain = tag_in(body, "event_id");
        let decoded = tag_in(body, "event_id_b64").map(|encoded| {
            let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(encoded);
            String::from_utf8(bytes.expect("base64url without padding")).expect("a key is ASCII")
        });
        plain.map(str::to_owned).or(decoded).unwrap_or_default()
    }

    pub fn event_id(&self) -> String {
        Self::event_id_in(&self.body)
    }

    pub fn tag(&self, name: &str) -> Option<&str> {
        tag_in(&self.body, name)
    }

    /// The one recipient. Whoever else would get the email fails the test.
    #[track_caller]
    pub fn to(&self) -> Mailbox {
        let destination = self.body["Destination"].as_object().expect("a destination");
        for (name, addresses) in destination {
            let nobody = addresses.as_array().is_none_or(Vec::is_empty);
            assert!(
                name == "ToAddresses" || nobody,
                "{name} has addresses: {addresses}"
            );
        }
        only_mailbox(&self.body["Destination"]["ToAddresses"])
    }

    #[track_caller]
    pub fn from(&self) -> Mailbox {
        decode(self.body["FromEmailAddress"].as_str().expect("a sender"))
    }

    /// The one address for answers, if there is any.
    #[track_caller]
    pub fn reply_to(&self) -> Option<Mailbox> {
        let addresses = &self.body["ReplyToAddresses"];
        addresses
            .as_array()
            .is_some_and(|list| !list.is_empty())
            .then(|| only_mailbox(addresses))
    }

    #[track_caller]
    pub fn subject(&self) -> &str {
        self.utf8(&["Subject"])
    }

    #[track_caller]
    pub fn html(&self) -> &str {
        self.utf8(&["Body", "Html"])
    }

    #[track_caller]
    pub fn text(&self) -> &str {
        self.utf8(&["Body", "Text"])
    }

    /// The extra headers, in their order.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        let headers = self.body["Content"]["Simple"]["Headers"].as_array();
        headers
            .into_iter()
            .flatten()
            .map(|header| (text(&header["Name"]), text(&header["Value"])))
            .collect()
    }

    pub fn configuration_set(&self) -> Option<&str> {
        self.body["ConfigurationSetName"].as_str()
    }

    #[track_caller]
    fn utf8(&self, path: &[&str]) -> &str {
        let simple = &self.body["Content"]["Simple"];
        let part = path.iter().fold(simple, |value, name| &value[name]);
        assert_eq!(part["Charset"], "UTF-8", "the character set of {path:?}");
        part["Data"]
            .as_str()
            .unwrap_or_else(|| panic!("no {path:?} in {simple}"))
    }
}

fn tag_in<'a>(body: &'a Value, name: &str) -> Option<&'a str> {
    let tags = body["EmailTags"].as_array()?;
    tags.iter()
        .find(|tag| tag["Name"] == name)
        .and_then(|tag| tag["Value"].as_str())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[track_caller]
fn only_mailbox(addresses: &Value) -> Mailbox {
    match addresses.as_array().map(Vec::as_slice) {
        Some([Value::String(address)]) => decode(address),
        _ => panic!("not exactly one address: {addresses}"),
    }
}

/// Decodes what SES writes into an address header, and insists that it is one address.
#[track_caller]
fn decode(address: &str) -> Mailbox {
    assert!(
        address.is_ascii(),
        "SES takes ASCII alone in an address: {address}"
    );
    assert!(
        !address.contains(['\r', '\n']),
        "a line break in an address: {address:?}"
    );
    let header = format!("To: {address}\r\n");
    let (header, _) = mailparse::parse_header(header.as_bytes()).expect("a header");
    let decoded = mailparse::addrparse_header(&header).expect("an address header");
    match decoded.as_slice() {
        [MailAddr::Single(mailbox)] => Mailbox {
            name: mailbox.display_name.clone(),
            address: mailbox.addr.clone(),
        },
        _ => panic!("not exactly one address: {address}"),
    }
}
