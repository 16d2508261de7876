//! A small folder without a fault, and the same with one.

use crate::source::Source;

const EMAIL_TOML: &str = r#"description = "Tells a user something"

[fields]
event_id = { type = "key" }
user_id = { type = "integer", minimum = 1 }
note = { type = "string", required = false }

[headers]
Auto-Submitted = "auto-generated"

[log]
event = ["user_id"]
"#;

const RECIPIENT_SQL: &str = "\
-- A user.
SELECT
    u.email AS to_address,
    u.first_name AS to_name
FROM auth_user AS u
WHERE u.id = ($1::jsonb -> 'user_id')::bigint
";

const BODY_HTML: &str = "\
{% extends \"layout.html\" %}
{% block content %}
<p>Hello {{ to_name }}</p>
{% endblock %}
";

const SAMPLE: &str = r#"{
  "type": "user.told",
  "event_id": "e-1",
  "user_id": 5
}
"#;

pub fn sound() -> Source {
    let files = [
        (
            "layout.html",
            "<html>\n{% block content %}{% endblock %}\n</html>",
        ),
        ("layout.txt", "{% block content %}{% endblock %}"),
        ("user.told/email.toml", EMAIL_TOML),
        ("user.told/recipient.sql", RECIPIENT_SQL),
        ("user.told/subject.txt", "Hello\n"),
        ("user.told/body.html", BODY_HTML),
        ("user.told/body.txt", "Hello {{ to_name }}\n"),
        ("user.told/samples/sam.json", SAMPLE),
    ];
    Source(
        files
            .map(|(file, text)| (file.to_owned(), text.to_owned()))
            .into(),
    )
}

/// The sound folder, in which a text of one file is another.
pub fn with(file: &str, old: &str, new: &str) -> Source {
    let mut source = sound();
    let text = source
        .0
        .get_mut(&format!("user.told/{file}"))
        .expect("a file of the folder");
    assert!(text.contains(old), "{file} has no {old}");
    *text = text.replacen(old, new, 1);
    source
}
