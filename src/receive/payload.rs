//! The canonical form of an event, so that the same event is recognised however a producer wrote it.

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// SHA-256 of the canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadHash(pub [u8; 32]);

/// Whole numbers beyond this can't be told apart in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes whole numbers as integers (`3.0` and `3e0` as `3`), as JSON Schema counts them and Postgres needs them.
pub(super) fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            if let Some(whole) = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)
            {
                *number = Number::from(whole as i64);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(normalize),
        Value::Object(object) => object.values_mut().for_each(normalize),
        _ => {}
    }
}

/// Hashes the normalized event with its keys in order and without white space.
pub(super) fn hash(event: &Map<String, Value>) -> PayloadHash {
    let mut canonical = String::new();
    write_object(&mut canonical, event);
    PayloadHash(Sha256::digest(canonical).into())
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Object(object) => write_object(out, object),
        Value::Array(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, value);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Sorted here rather than by the map: whether serde_json's keeps order is up to any crate in the build.
fn write_object(out: &mut String, object: &Map<String, Value>) {
    let mut entries = object.iter().collect::<Vec<_>>();
    entries.sort_unstable_by_key(|(name, _)| *name);
    out.push('{');
    for (index, (name, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        write(out, value);
    }
    out.push('}');
}

/// Whether a NUL is anywhere in it, which Postgres's `jsonb` refuses.
pub(super) fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(has_nul),
        Value::Object(object) => object
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(json: &str) -> PayloadHash {
        let mut value = serde_json::from_str(json).unwrap();
        normalize(&mut value);
        hash(value.as_object().unwrap())
    }

    #[test]
    fn order_white_space_escapes_and_number_forms_do_not_matter() {
        let hash = hash_of(r#"{"a":3,"b":{"x":"é","y":[1,2]}}"#);
        for same in [
            r#"{ "b": { "y": [1, 2], "x": "\u00e9" }, "a": 3 }"#,
            r#"{"a":3.0,"b":{"x":"é","y":[1.0,2e0]}}"#,
        ] {
            assert_eq!(hash_of(same), hash, "{same}");
        }
    }

    #[test]
    fn another_value_another_type_or_another_order_of_a_list_is_another_payload() {
        let hash = hash_of(r#"{"a":3,"b":[1,2]}"#);
        for other in [
            r#"{"a":4,"b":[1,2]}"#,
            r#"{"a":"3","b":[1,2]}"#,
            r#"{"a":3,"b":[2,1]}"#,
            r#"{"a":3,"b":[1,2],"c":null}"#,
            r#"{"a":3.5,"b":[1,2]}"#,
        ] {
            assert_ne!(hash_of(other), hash, "{other}");
        }
    }

    #[test]
    fn large_integers_keep_all_their_digits() {
        assert_ne!(
            hash_of(r#"{"a":9007199254740993}"#),
            hash_of(r#"{"a":9007199254740992}"#)
        );
    }
}
