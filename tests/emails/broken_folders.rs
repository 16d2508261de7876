//! A broken folder isn't even loaded, and the message names the file and the line.

use crate::source::Source;
use crate::specimen::{sound, with};

/// What is said of a folder that can't even be loaded.
#[track_caller]
fn refused(source: &Source) -> String {
    let problem = source.catalogue().err().expect("the folder is broken");
    source.explain(&problem)
}

#[test]
fn a_syntax_error_in_a_template_names_its_line() {
    assert_eq!(
        refused(&with("body.html", "{{ to_name }}", "{{ to_name }")),
        "emails/user.told/body.html:3: syntax error: unexpected `}`, expected end of variable block\n    \
         <p>Hello {{ to_name }</p>"
    );
    assert_eq!(
        refused(&with("body.txt", "{{ to_name }}", "{% if to_name %}\n")),
        "emails/user.told/body.txt:1: syntax error: unexpected end of input, expected end of block\n    \
         Hello {% if to_name %}"
    );
}

#[test]
fn a_mistake_in_email_toml_names_its_line() {
    for (old, new, message) in [
        (
            "\"integer\"",
            "\"int\"",
            ":5: `int` is no type: expected key, string, integer, number or boolean\n    user_id = { type = \"int\", minimum = 1 }",
        ),
        (
            "minimum",
            "min",
            ":5: unknown field `min`, expected one of `type`, `required`, `min_length`, `max_length`, `one_of`, `minimum`, `maximum`\n    user_id = { type = \"integer\", min = 1 }",
        ),
        (
            "minimum = 1",
            "minimum = 2, maximum = 1",
            ":5: its bounds contradict each other: no value fits\n    user_id = { type = \"integer\", minimum = 2, maximum = 1 }",
        ),
        (
            "minimum = 1",
            "minimum = 1.5",
            ":5: a bound must be a whole number\n    user_id = { type = \"integer\", minimum = 1.5 }",
        ),
        (
            "\"integer\", minimum = 1",
            "\"number\", minimum = nan",
            ":5: a bound must be a number\n    user_id = { type = \"number\", minimum = nan }",
        ),
        (
            "\"key\"",
            "\"key\", max_length = 3",
            ":4: a key takes no bounds\n    event_id = { type = \"key\", max_length = 3 }",
        ),
        (
            "description",
            "descripton",
            ":1: unknown field `descripton`, expected one of `description`, `idempotency_key`, `from`, `reply_to`, `fields`, `headers`, `log`\n    descripton = \"Tells a user something\"",
        ),
        (
            "[log]",
            "[log",
            ":11: unclosed table, expected `]`\n    [log",
        ),
        (
            "[\"user_id\"]",
            "[\n  \"user_id\",\n  \"usr_id\",\n]",
            ":14: [log] names `usr_id`, which is no field\n    \"usr_id\",",
        ),
        (
            "[\"user_id\"]",
            "[\"user_id\"]\nrow = [\"to_name\"]",
            ":13: [log] names `to_name`, which is never logged\n    row = [\"to_name\"]",
        ),
        (
            "note =",
            "type =",
            ": [fields] can't declare `type`: each event has it",
        ),
        (
            "note =",
            "subject =",
            ": [fields] can't declare `subject`: in templates it is the finished subject",
        ),
    ] {
        assert_eq!(
            refused(&with("email.toml", old, new)),
            format!("emails/user.told/email.toml{message}")
        );
    }
}

#[test]
fn a_key_that_could_be_the_same_for_two_events_is_refused() {
    for (key, message) in [
        (
            "{{ note }}",
            "`idempotency_key` names `note`, which is an optional field in [fields]; it needs required ones",
        ),
        (
            "{{ nope }}",
            "`idempotency_key` names `nope`, which is no field in [fields]; it needs required ones",
        ),
        (
            "always",
            "`idempotency_key` names no field: all events would share one key",
        ),
        (
            "{{ user_id",
            "syntax error: unexpected end of input, expected end of variable block",
        ),
    ] {
        let line = format!("idempotency_key = '{key}'");
        let source = with("email.toml", "\n[fields]", &format!("{line}\n[fields]"));
        assert_eq!(
            refused(&source),
            format!("emails/user.told/email.toml:2: {message}\n    {line}")
        );
    }
    assert_eq!(
        refused(&with("email.toml", "event_id =", "id =")),
        "emails/user.told/email.toml: `idempotency_key` names `event_id`, which is no field in [fields]; \
         it needs required ones"
    );
}

#[test]
fn a_bad_header_or_sender_is_refused() {
    for (old, new, line, message) in [
        (
            "Auto-Submitted",
            "Reply-To",
            9,
            "[headers] `Reply-To` is set by SES or from elsewhere",
        ),
        (
            "Auto-Submitted",
            "\"Auto Submitted\"",
            9,
            "[headers] `Auto Submitted` is no name of a header",
        ),
        (
            "auto-generated",
            "{{ user_id",
            9,
            "syntax error: unexpected end of input, expected end of variable block",
        ),
        (
            "\n[fields]",
            "from = 'Job Board'\n\n[fields]",
            2,
            "`from`: ",
        ),
        (
            "\n[fields]",
            "reply_to = 'Job Board <a@b@c>'\n\n[fields]",
            2,
            "`reply_to`: ",
        ),
    ] {
        let problem = refused(&with("email.toml", old, new));
        let expected = format!("emails/user.told/email.toml:{line}: {message}");
        assert!(problem.starts_with(&expected), "{problem}");
    }
    let headers: String = (1..16)
        .map(|number| format!("X-{number} = 'x'\n"))
        .collect();
    assert_eq!(
        refused(&with("email.toml", "[log]", &format!("{headers}[log]"))),
        "emails/user.told/email.toml: [headers] has more than SES's 15"
    );
}

#[test]
fn a_missing_or_empty_file_is_named() {
    for file in [
        "email.toml",
        "recipient.sql",
        "subject.txt",
        "body.html",
        "body.txt",
    ] {
        let expected = format!("emails/user.told/{file}: the file is missing or empty");
        let mut source = sound();
        source.0.insert(format!("user.told/{file}"), " \n".into());
        assert_eq!(refused(&source), expected);
        source.0.remove(&format!("user.told/{file}"));
        assert_eq!(refused(&source), expected);
    }
}

#[test]
fn a_folder_whose_name_can_be_no_event_type_is_refused() {
    for name in ["User.Told", "user-told", "user told"] {
        let mut source = sound();
        source.0 = source
            .0
            .into_iter()
            .map(|(path, text)| (path.replace("user.told", name), text))
            .collect();
        assert_eq!(
            refused(&source),
            format!(
                "emails/{name}: an event type is 1 to 100 lower-case letters, digits, `_` and `.`"
            )
        );
    }
}
