//! What SES itself would not take, so that a test can't pass with a request that production refuses.
//!
//! From the API's own model: <https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html>.

use serde_json::Value;

/// Why SES would refuse the request, if it would.
pub fn complaint(body: &Value) -> Option<String> {
    let simple = &body["Content"]["Simple"];
    let tags = list(&body["EmailTags"]);
    let headers = list(&simple["Headers"]);
    let destination = body["Destination"].as_object();
    let recipients: Vec<&Value> = destination
        .into_iter()
        .flat_map(|kinds| kinds.values().flat_map(list))
        .collect();
    let subject = simple["Subject"]["Data"].as_str().unwrap_or_default();
    let configuration_set = body["ConfigurationSetName"].as_str();

    let rules = [
        ("a recipient", (1..=50).contains(&recipients.len())),
        (
            "recipients in ASCII",
            recipients.into_iter().all(is_address),
        ),
        ("a sender in ASCII", is_address(&body["FromEmailAddress"])),
        (
            "addresses for answers in ASCII",
            list(&body["ReplyToAddresses"]).into_iter().all(is_address),
        ),
        (
            "a subject on one line",
            !subject.is_empty() && !subject.contains(['\r', '\n']),
        ),
        (
            "tags of letters, digits, _ and -",
            tags.into_iter().all(is_tag),
        ),
        ("at most 15 headers", headers.len() <= 15),
        (
            "headers of printable ASCII",
            headers.into_iter().all(is_header),
        ),
        (
            "a configuration set's name",
            configuration_set.is_none_or(|name| name.len() <= 64 && is_word(name)),
        ),
    ];
    let broken = rules.into_iter().find(|(_, kept)| !kept);
    broken.map(|(rule, _)| format!("The stand-in for SES wants {rule}: {body}"))
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().into_iter().flatten().collect()
}

fn is_address(value: &Value) -> bool {
    let printable = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    value
        .as_str()
        .is_some_and(|address| address.contains('@') && printable(address))
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn is_tag(tag: &Value) -> bool {
    let fits = |part: &Value| {
        part.as_str()
            .is_some_and(|text| text.len() <= 256 && is_word(text))
    };
    fits(&tag["Name"]) && fits(&tag["Value"])
}

fn is_header(header: &Value) -> bool {
    let (Some(name), Some(value)) = (header["Name"].as_str(), header["Value"].as_str()) else {
        return false;
    };
    (1..=126).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b':')
        && (1..=995).contains(&value.len())
        && name.len() + value.len() <= 996
        && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}
