//! Events that differ from a good one in one field, towards each way in which a field can be wrong or nearly so.

use onemail::emails::{FieldType, Folder};
use serde_json::{Map, Value, json};

pub type Fields = Map<String, Value>;

/// The good event itself is the first.
pub fn of(event: &Fields, folder: &Folder) -> Vec<Fields> {
    let mut events = vec![event.clone()];
    let declared = folder
        .fields()
        .iter()
        .map(|(name, field)| (name, Some(&field.kind)));
    for (name, kind) in declared.chain([("type", None), ("undeclared", None)]) {
        let mut without = event.clone();
        without.remove(name);
        events.push(without);
        let near = kind.map(near_the_bounds).unwrap_or_default();
        for value in of_each_type().into_iter().chain(near) {
            let mut with = event.clone();
            with.insert(name.to_owned(), value);
            events.push(with);
        }
    }
    events
}

fn of_each_type() -> Vec<Value> {
    let numbers = "0 1 -1 3 3.0 3.5 1e2 -0.0 0.1 1e300 -1e300 2147483648 9007199254740991 9007199254740992 \
                   9007199254740992.0 9007199254740993 -9007199254740992.0 9223372036854775807 \
                   9223372036854775808 -9223372036854775808 18446744073709551615 18446744073709551616";
    let numbers = numbers.split(' ').map(number);
    let texts = [
        "",
        " ",
        "3",
        "a",
        "a b",
        " a",
        "a\n",
        "\na",
        "a\tb",
        "\u{0}",
        "a\u{0}b",
        "\u{7f}",
        "\u{a0}",
        "\u{feff}",
        "é",
        "e\u{301}",
        "👩‍👩‍👧",
        "\u{10ffff}",
        "~",
        "!",
        "null",
        "true",
    ];
    let texts = texts.into_iter().map(Value::from);
    let lengths = [49, 50, 51, 63, 64, 65, 255, 256, 1000];
    let long = lengths.into_iter().flat_map(texts_of_length);
    let others = [
        json!(null),
        json!(true),
        json!(false),
        json!([]),
        json!(["a"]),
        json!({}),
        json!({ "a": 1 }),
    ];
    numbers.chain(texts).chain(long).chain(others).collect()
}

/// As JSON writes it: `3.0` is not `3`, and some fit no type of Rust.
fn number(text: &str) -> Value {
    serde_json::from_str(text).expect("a number")
}

/// Characters of one, two and four bytes.
fn texts_of_length(length: usize) -> [Value; 3] {
    ["k", "é", "🙂"].map(|character| Value::from(character.repeat(length)))
}

fn near_the_bounds(kind: &FieldType) -> Vec<Value> {
    match kind {
        FieldType::Key | FieldType::Boolean => vec![],
        FieldType::String {
            min_length,
            max_length,
            one_of,
        } => {
            let bounds = [Some(*min_length), *max_length].into_iter().flatten();
            let lengths = bounds.flat_map(|bound| bound.saturating_sub(1)..=bound + 1);
            let texts = lengths.flat_map(|length| texts_of_length(length as usize));
            let listed = one_of.iter().flatten();
            let nearly =
                listed.flat_map(|text| [text.clone(), text.to_uppercase(), format!("{text} ")]);
            texts.chain(nearly.map(Value::from)).collect()
        }
        FieldType::Integer { minimum, maximum } => {
            let bounds = [*minimum, *maximum].map(i128::from);
            let near = bounds.into_iter().flat_map(|bound| bound - 1..=bound + 1);
            near.map(|value| number(&value.to_string())).collect()
        }
        FieldType::Number { minimum, maximum } => {
            let bounds = [*minimum, *maximum].into_iter().flatten();
            bounds
                .flat_map(|bound| [bound.next_down(), bound, bound.next_up()].map(Value::from))
                .collect()
        }
    }
}
