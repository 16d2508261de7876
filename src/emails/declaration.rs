//! A field as `email.toml` declares it; what makes no sense is refused.

use serde::Deserialize;

use super::fields::{Field, FieldType};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declaration {
    r#type: String,
    #[serde(default = "yes")]
    required: bool,
    min_length: Option<u64>,
    max_length: Option<u64>,
    one_of: Option<Vec<String>>,
    minimum: Option<toml::Value>,
    maximum: Option<toml::Value>,
}

fn yes() -> bool {
    true
}

impl TryFrom<Declaration> for Field {
    type Error = String;

    fn try_from(declared: Declaration) -> Result<Self, String> {
        let Declaration {
            r#type,
            required,
            min_length,
            max_length,
            one_of,
            minimum,
            maximum,
        } = declared;
        let has_lengths = min_length.is_some() || max_length.is_some() || one_of.is_some();
        let has_bounds = minimum.is_some() || maximum.is_some();
        let kind = match r#type.as_str() {
            "string" if !has_bounds => FieldType::String {
                min_length: min_length.unwrap_or(1),
                max_length,
                one_of,
            },
            "integer" if !has_lengths => FieldType::Integer {
                minimum: whole(minimum)?.unwrap_or(i64::MIN),
                maximum: whole(maximum)?.unwrap_or(i64::MAX),
            },
            "number" if !has_lengths => FieldType::Number {
                minimum: number(minimum)?,
                maximum: number(maximum)?,
            },
            "key" if !has_lengths && !has_bounds => FieldType::Key,
            "boolean" if !has_lengths && !has_bounds => FieldType::Boolean,
            "string" => return Err("a string takes no `minimum` or `maximum`".into()),
            "integer" | "number" => {
                return Err("a number takes no `min_length`, `max_length` or `one_of`".into());
            }
            "key" | "boolean" => return Err(format!("a {} takes no bounds", r#type)),
            other => {
                return Err(format!(
                    "`{other}` is no type: expected key, string, integer, number or boolean"
                ));
            }
        };
        if kind.admits_nothing() {
            return Err("its bounds contradict each other: no value fits".into());
        }
        Ok(Self { required, kind })
    }
}

fn whole(bound: Option<toml::Value>) -> Result<Option<i64>, String> {
    bound
        .map(|value| {
            value
                .as_integer()
                .ok_or("a bound must be a whole number".into())
        })
        .transpose()
}

fn number(bound: Option<toml::Value>) -> Result<Option<f64>, String> {
    bound
        .map(|value| match value {
            toml::Value::Integer(whole) => Ok(whole as f64),
            toml::Value::Float(float) if float.is_finite() => Ok(float),
            _ => Err("a bound must be a number".into()),
        })
        .transpose()
}
