//! What the schema tells producers is what the function does. The function has a small check of its own, since a
//! validator would cost megabytes; here it is held against a validator.

use jsonschema::Validator;
use onemail::emails::{Catalogue, FieldType, Folder, event_schema};
use onemail::receive::{Event, Malformed};
use serde_json::{Value, json};

use crate::mutations::{self, Fields};
use crate::source::Source;
use crate::stage::Stage;

#[test]
fn schema_and_function_agree_on_valid_and_broken_events_of_each_folder() {
    let stage = Stage::shipped();
    for (folder, sample) in stage.samples() {
        let event: Fields = serde_json::from_str(sample.text).unwrap();
        assert_agreement(&stage.catalogue, folder, &event);
    }
}

#[test]
fn schema_and_function_agree_on_each_type_of_field() {
    let (catalogue, event) = all_types();
    assert_agreement(&catalogue, catalogue.folder("all.types").unwrap(), &event);
}

#[test]
fn schema_and_function_agree_that_an_event_is_an_object() {
    let (catalogue, _) = all_types();
    let validator = validator(catalogue.folder("all.types").unwrap());
    for event in [
        json!(null),
        json!([]),
        json!("all.types"),
        json!(3),
        json!(true),
        json!({}),
    ] {
        assert!(!validator.is_valid(&event), "{event}");
        assert!(
            Event::parse(Some(&event.to_string()), &catalogue).is_err(),
            "{event}"
        );
    }
}

#[test]
fn the_function_alone_refuses_a_whole_number_that_a_double_may_have_changed() {
    // Both are this double: which of the two the producer meant can't be told any more.
    let (catalogue, mut event) = all_types();
    for number in ["9007199254740994.0", "9007199254740994.5", "1e16"] {
        event.insert("integer".into(), serde_json::from_str(number).unwrap());
        let (by_schema, by_function) = verdicts(&catalogue, &event);
        assert!(by_schema, "{number}");
        assert_eq!(by_function.map_err(|problem| problem.to_string()), Err(
            "the field `integer` must be a whole number from -9223372036854775808 to 9223372036854775807".into()
        ));
    }
}

#[test]
fn the_function_alone_refuses_a_nul_in_what_is_not_declared() {
    let (catalogue, event) = all_types();
    for (name, value) in [
        ("undeclared", json!("a\u{0}")),
        ("undeclared", json!({ "a": ["\u{0}"] })),
        ("unde\u{0}clared", json!(1)),
    ] {
        let mut event = event.clone();
        event.insert(name.into(), value);
        assert_eq!(verdicts(&catalogue, &event), (true, Err(Malformed::Nul)));
    }
}

#[test]
fn the_function_alone_refuses_a_key_that_comes_out_too_long() {
    let manifest = "idempotency_key = 'photo-{{ sha256 }}'\n[fields]\nsha256 = { type = 'string' }";
    let catalogue = catalogue_of("photo.uploaded", manifest);
    let event = |sha256: String| {
        let event = json!({ "type": "photo.uploaded", "sha256": sha256 });
        event.as_object().unwrap().clone()
    };
    assert_eq!(verdicts(&catalogue, &event("5".repeat(58))), (true, Ok(())));
    assert_eq!(
        verdicts(&catalogue, &event("5".repeat(59))),
        (true, Err(Malformed::Key))
    );
    assert_eq!(
        verdicts(&catalogue, &event("5 5".into())),
        (true, Err(Malformed::Key))
    );
}

/// Each type of field with each thing that can be said of it, and an event that has them all.
fn all_types() -> (Catalogue, Fields) {
    let manifest = "
        [fields]
        event_id = { type = 'key' }
        maybe_key = { type = 'key', required = false }
        string = { type = 'string' }
        bounded_string = { type = 'string', min_length = 2, max_length = 5 }
        empty_string = { type = 'string', min_length = 0, max_length = 0 }
        listed = { type = 'string', one_of = ['red', 'dark green', 'blå'] }
        listed_and_short = { type = 'string', one_of = ['red', 'green'], max_length = 3 }
        maybe_listed = { type = 'string', one_of = ['red', 'null'], required = false }
        integer = { type = 'integer' }
        bounded_integer = { type = 'integer', minimum = -3, maximum = 1000000 }
        maybe_integer = { type = 'integer', minimum = 1, required = false }
        number = { type = 'number' }
        bounded_number = { type = 'number', minimum = 0, maximum = 99.5 }
        maybe_number = { type = 'number', maximum = -0.5, required = false }
        boolean = { type = 'boolean' }
        maybe_boolean = { type = 'boolean', required = false }";
    let event = json!({
        "type": "all.types", "event_id": "e-1", "maybe_key": "k", "string": "text", "bounded_string": "éé",
        "empty_string": "", "listed": "blå", "listed_and_short": "red", "maybe_listed": "red", "integer": 3,
        "bounded_integer": 3, "maybe_integer": 3, "number": 3.5, "bounded_number": 3, "maybe_number": -3,
        "boolean": true, "maybe_boolean": false,
    });
    (
        catalogue_of("all.types", manifest),
        event.as_object().expect("an object").clone(),
    )
}

fn catalogue_of(event_type: &str, manifest: &str) -> Catalogue {
    let files = [
        ("email.toml", manifest),
        ("recipient.sql", "SELECT 1"),
        ("subject.txt", "Hello"),
        ("body.html", "Hello"),
        ("body.txt", "Hello"),
    ];
    let files = files.map(|(file, text)| (format!("{event_type}/{file}"), text.to_owned()));
    Source(files.into())
        .catalogue()
        .unwrap_or_else(|problem| panic!("{problem}"))
}

fn validator(folder: &Folder) -> Validator {
    let schema = event_schema(folder);
    assert!(jsonschema::meta::is_valid(&schema), "{schema:#}");
    jsonschema::validator_for(&schema).expect("a schema")
}

fn verdicts(catalogue: &Catalogue, event: &Fields) -> (bool, Result<(), Malformed>) {
    let folder = catalogue.folders().next().expect("a folder");
    let by_schema = validator(folder).is_valid(&Value::Object(event.clone()));
    (by_schema, function(catalogue, event))
}

fn function(catalogue: &Catalogue, event: &Fields) -> Result<(), Malformed> {
    let body = Value::Object(event.clone()).to_string();
    Event::parse(Some(&body), catalogue).map(drop)
}

#[track_caller]
fn assert_agreement(catalogue: &Catalogue, folder: &Folder, event: &Fields) {
    let validator = validator(folder);
    let (mut admitted, mut refused) = (false, false);
    for event in mutations::of(event, folder) {
        let by_function = function(catalogue, &event);
        let by_schema = validator.is_valid(&Value::Object(event.clone()));
        if is_beyond_the_schema(folder, &event, by_function.as_ref()) {
            assert!(by_schema, "only the function refuses this: {event:?}");
            continue;
        }
        assert_eq!(
            by_function.is_ok(),
            by_schema,
            "the function: {by_function:?}; the event: {event:?}"
        );
        admitted |= by_schema;
        refused |= !by_schema;
    }
    assert!(admitted && refused, "there are events of both kinds");
}

/// What a schema can't say; each has a test of its own above.
fn is_beyond_the_schema(
    folder: &Folder,
    event: &Fields,
    by_function: Result<&(), &Malformed>,
) -> bool {
    match by_function {
        Ok(()) => false,
        // Made from fields that are all right by themselves.
        Err(Malformed::Key) => true,
        Err(Malformed::Nul) => {
            let undeclared = |name: &str| name != "type" && folder.fields().get(name).is_none();
            event
                .iter()
                .any(|(name, value)| undeclared(name) && value.to_string().contains("\\u0000"))
        }
        Err(_) => {
            folder
                .fields()
                .iter()
                .any(|(name, field)| match (&field.kind, event.get(name)) {
                    (FieldType::Integer { minimum, maximum }, Some(Value::Number(number)))
                        if number.is_f64() =>
                    {
                        let float = number.as_f64().unwrap_or_default();
                        let bounds = *minimum as f64..*maximum as f64;
                        float.fract() == 0.0
                            && float.abs() > 9_007_199_254_740_992.0
                            && bounds.contains(&float)
                    }
                    _ => false,
                })
        }
    }
}
