//! The JSON Schema of an event, for its producers.

use serde_json::{Map, Value, json};

use super::fields::{Field, FieldType};
use super::folder::Folder;

/// What `event.schema.json` of the folder must hold.
pub fn event_schema(folder: &Folder) -> Value {
    let mut properties = Map::new();
    properties.insert("type".into(), json!({ "const": folder.event_type() }));
    let mut required = vec![Value::from("type")];
    for (name, field) in folder.fields().iter() {
        properties.insert(name.into(), property(field));
        if field.required {
            required.push(name.into());
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": folder.event_type(),
        "description": folder.description(),
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

fn property(field: &Field) -> Value {
    let mut schema = match &field.kind {
        FieldType::Key => json!({ "type": "string", "pattern": "^[!-~]{1,64}$" }),
        FieldType::String {
            min_length,
            max_length,
            one_of,
        } => {
            // Postgres takes no NUL in a text. `\x00`, since not every dialect of regular expressions knows `\u0000`.
            let mut schema = json!({
                "type": "string",
                "minLength": min_length,
                "pattern": "^[^\\x00]*$",
            });
            if let Some(max_length) = max_length {
                schema["maxLength"] = json!(max_length);
            }
            if let Some(one_of) = one_of {
                schema["enum"] = json!(one_of);
            }
            schema
        }
        FieldType::Integer { minimum, maximum } => {
            json!({ "type": "integer", "minimum": minimum, "maximum": maximum })
        }
        FieldType::Number { minimum, maximum } => {
            let mut schema = json!({ "type": "number" });
            if let Some(minimum) = minimum {
                schema["minimum"] = json!(minimum);
            }
            if let Some(maximum) = maximum {
                schema["maximum"] = json!(maximum);
            }
            schema
        }
        FieldType::Boolean => json!({ "type": "boolean" }),
    };
    if !field.required {
        schema["type"] = json!([schema["type"], "null"]);
        if let Some(Value::Array(values)) = schema.get_mut("enum") {
            values.push(Value::Null);
        }
    }
    schema
}
