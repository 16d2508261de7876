//! A folder that can be loaded, and can't make an email of its sample, is refused with the file and the line.

use crate::jobboard::Jobboard;
use crate::source::Source;
use crate::specimen::{sound, with};
use crate::stage::{Stage, jobboard};

/// What is said of a folder whose sample can't become an email.
async fn refused_with_its_sample(jobboard: &Jobboard, source: Source) -> String {
    let stage = Stage::of(source);
    let mut scenes = stage.scenes(jobboard).await;
    let email = scenes.remove(0).and_then(|scene| scene.email());
    stage
        .source
        .explain(&email.expect_err("the folder is broken"))
}

#[tokio::test]
async fn an_undefined_variable_names_the_line_that_uses_it() {
    let jobboard = jobboard().await;
    let in_body = with("body.html", "{{ to_name }}", "{{ first_name }}");
    assert_eq!(
        refused_with_its_sample(&jobboard, in_body).await,
        "emails/user.told/body.html:3: undefined value (with samples/sam.json)\n    <p>Hello {{ first_name }}</p>"
    );
    let in_subject = with("subject.txt", "Hello", "\nHello {{ first_name }}");
    assert_eq!(
        refused_with_its_sample(&jobboard, in_subject).await,
        "emails/user.told/subject.txt:2: undefined value (with samples/sam.json)\n    Hello {{ first_name }}"
    );
    let in_header = with("email.toml", "auto-generated", "{{ first_name }}");
    assert_eq!(
        refused_with_its_sample(&jobboard, in_header).await,
        "emails/user.told/email.toml:9: undefined value (with samples/sam.json)\n    \
         Auto-Submitted = \"{{ first_name }}\""
    );
    jobboard.drop().await.unwrap();
}

#[tokio::test]
async fn a_mistake_in_a_template_that_others_use_names_that_template() {
    let jobboard = jobboard().await;
    let mut in_layout = sound();
    in_layout.0.insert(
        "layout.html".into(),
        "<html>\n<i>{{ nope }}</i>{% block content %}{% endblock %}".into(),
    );
    assert_eq!(
        refused_with_its_sample(&jobboard, in_layout).await,
        "emails/layout.html:2: undefined value (with samples/sam.json)\n    \
         <i>{{ nope }}</i>{% block content %}{% endblock %}"
    );
    let mut in_include = with(
        "body.html",
        "Hello",
        "\n{% include 'user.told/greeting.html' %}",
    );
    in_include
        .0
        .insert("user.told/greeting.html".into(), "Dear\n{{ nope }}".into());
    assert_eq!(
        refused_with_its_sample(&jobboard, in_include).await,
        "emails/user.told/greeting.html:2: undefined value (with samples/sam.json)\n    {{ nope }}"
    );
    let mut in_super = with("body.html", "Hello", "\n{{ super() }}");
    in_super.0.insert(
        "layout.html".into(),
        "{% block content %}\n{{ nope }}\n{% endblock %}".into(),
    );
    assert_eq!(
        refused_with_its_sample(&jobboard, in_super).await,
        "emails/layout.html:2: undefined value (with samples/sam.json)\n    {{ nope }}"
    );
    let no_layout = with("body.html", "layout.html", "layuot.html");
    assert_eq!(
        refused_with_its_sample(&jobboard, no_layout).await,
        "emails/user.told/body.html:1: template not found (with samples/sam.json)\n    {% extends \"layuot.html\" %}"
    );
    jobboard.drop().await.unwrap();
}

#[tokio::test]
async fn a_query_that_postgres_refuses_names_its_line() {
    let jobboard = jobboard().await;
    for (old, new, message) in [
        (
            "to_address,",
            "to_address",
            ":4: syntax error at or near \"u\"",
        ),
        (
            "u.first_name",
            "u.frist_name",
            ":4: column u.frist_name does not exist (Perhaps you meant to reference the column \"u.first_name\".)",
        ),
        (
            "auth_user",
            "auth_usr",
            ":5: relation \"auth_usr\" does not exist",
        ),
        (
            "-- A user.",
            "-- Ein Benutzer, größer als ein Byte je Zeichen: 株式会社さくら\n;",
            ":2: syntax error at or near \";\"",
        ),
        (
            "::bigint\n",
            "::bigint)\n-- the end",
            ":6: syntax error at or near \")\"",
        ),
        (
            "::bigint\n",
            "::bigint; DELETE FROM auth_user",
            ":6: syntax error at or near \";\"",
        ),
        (
            "SELECT",
            "WITH gone AS (DELETE FROM auth_user RETURNING *) SELECT",
            ":2: WITH clause containing a data-modifying statement must be at the top level",
        ),
        (
            "::bigint",
            "::bigint FOR UPDATE",
            ": cannot execute SELECT FOR UPDATE in a read-only transaction",
        ),
        (
            "u.first_name",
            "u.first_name AS to_name, u.last_name",
            ": two columns are called `to_name`: name one otherwise, with AS",
        ),
        (
            "'user_id'",
            "'event_id'",
            ": cannot cast jsonb string to type bigint",
        ),
    ] {
        let problem = refused_with_its_sample(&jobboard, with("recipient.sql", old, new)).await;
        let expected = format!("emails/user.told/recipient.sql{message} (with samples/sam.json)");
        assert!(problem.starts_with(&expected), "{problem}");
    }
    jobboard.drop().await.unwrap();
}

#[tokio::test]
async fn a_statement_that_could_not_be_part_of_a_query_names_its_line() {
    let jobboard = jobboard().await;
    let mut source = sound();
    let update = "-- größer\nUPDATE auth_user SET email = '' RETURNING email AS to_address\n";
    source
        .0
        .insert("user.told/recipient.sql".into(), update.into());
    assert_eq!(
        refused_with_its_sample(&jobboard, source).await,
        "emails/user.told/recipient.sql:2: syntax error at or near \"SET\" (with samples/sam.json)\n    \
         UPDATE auth_user SET email = '' RETURNING email AS to_address"
    );
    jobboard.drop().await.unwrap();
}

#[tokio::test]
async fn a_query_that_finds_nobody_two_or_no_address_is_refused() {
    let jobboard = jobboard().await;
    let nobody = with("samples/sam.json", "5", "500");
    assert_eq!(
        refused_with_its_sample(&jobboard, nobody).await,
        "emails/user.told/samples/sam.json: recipient.sql found no row: the ids of a sample must be in \
         local/jobboard.sql"
    );
    for (old, new, message) in [
        (
            "WHERE",
            "WHERE true OR",
            "more than one row was found, so it isn't clear whom to write to",
        ),
        (
            "to_address",
            "address",
            "recipient.sql returned no text column `to_address`",
        ),
        ("u.email", "'sam'", "the address has no `@` and domain"),
        ("u.email", "NULL", "the address is empty"),
    ] {
        assert_eq!(
            refused_with_its_sample(&jobboard, with("recipient.sql", old, new)).await,
            format!("emails/user.told/recipient.sql: {message} (with samples/sam.json)")
        );
    }
    jobboard.drop().await.unwrap();
}

#[tokio::test]
async fn a_sample_that_is_no_event_of_its_folder_names_its_line() {
    let jobboard = jobboard().await;
    for (old, new, message) in [
        (
            "\"e-1\",",
            "\"e-1\"",
            ":4: the body is not JSON (line 4, column 3)\n    \"user_id\": 5",
        ),
        (
            "5",
            "\"5\"",
            ":4: the field `user_id` must be a whole number from 1 to 9223372036854775807\n    \"user_id\": \"5\"",
        ),
        ("event_id", "id", ": the field `event_id` is missing"),
        (
            "user.told",
            "user.tld",
            ":2: there is no email for events of type `user.tld`\n    \"type\": \"user.tld\",",
        ),
    ] {
        assert_eq!(
            refused_with_its_sample(&jobboard, with("samples/sam.json", old, new)).await,
            format!("emails/user.told/samples/sam.json{message}")
        );
    }
    jobboard.drop().await.unwrap();
}
