//! The form of a line in Lambda.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::mask::mask_addresses;

/// A field of this name holds a JSON object, whose entries become fields of the line. tracing knows the names
/// of fields at compile time only, and an email's folder names those that are safe to log.
const DETAIL: &str = "detail";

/// One flat JSON object a line, with the `timestamp`, `level` and `message` that Lambda's log settings look for.
pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut line = Line::default();
        line.put("timestamp", timestamp.into());
        line.put("level", level_name(*event.metadata().level()).into());
        event.record(&mut line);
        line.put("target", event.metadata().target().into());
        writeln!(writer, "{}", Value::Object(line.flat()))
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::TRACE => "TRACE",
        Level::DEBUG => "DEBUG",
        Level::INFO => "INFO",
        Level::WARN => "WARN",
        Level::ERROR => "ERROR",
    }
}

#[derive(Default)]
struct Line {
    fields: Map<String, Value>,
    detail: Map<String, Value>,
}

impl Line {
    fn put(&mut self, name: &str, value: Value) {
        self.fields.entry(name).or_insert(value);
    }

    /// A folder can't overwrite a field that onemail sets.
    fn flat(mut self) -> Map<String, Value> {
        for (name, value) in std::mem::take(&mut self.detail) {
            self.put(&name, value);
        }
        self.fields.values_mut().for_each(mask);
        self.fields
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::String(text) => *text = mask_addresses(text).into_owned(),
        Value::Array(values) => values.iter_mut().for_each(mask),
        Value::Object(object) => object.values_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == DETAIL
            && let Ok(Value::Object(detail)) = serde_json::from_str(value)
        {
            self.detail = detail;
        } else {
            self.put(field.name(), value.into());
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field.name(), value.to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    /// What `work` logs in Lambda's form.
    pub(crate) fn lines_of(work: impl FnOnce()) -> Vec<Map<String, Value>> {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::registry().with(
            tracing_subscriber::fmt::layer()
                .event_format(JsonLine)
                .with_writer(lines.clone()),
        );
        tracing::subscriber::with_default(subscriber, work);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn no_value_of_a_line_shows_an_address() {
        let line = &lines_of(|| {
            let detail = json!({ "new_status": "asked sam@example.com", "all": ["jane%40example.com"], "n": 3 });
            tracing::warn!(
                event_id = "welcome:sam@example.com:7",
                error = ?"<sam@example.com>",
                detail = detail.to_string(),
                "{}", "failed for sam@example.com"
            );
        })[0];
        assert_eq!(line["event_id"], "welcome:***@***:7");
        assert_eq!(line["new_status"], "asked ***@***");
        let text = Value::Object(line.clone()).to_string();
        assert!(!text.contains("sam") && !text.contains("jane"), "{text}");
    }

    #[test]
    fn a_line_is_one_flat_json_object_and_a_folder_cannot_overwrite_our_fields() {
        let mut lines = lines_of(|| {
            let detail = json!({ "application_id": 3, "outcome": "faked", "level": "faked" });
            tracing::info!(
                outcome = "sent",
                event_id = Some("e-1"),
                reason = None::<&str>,
                elapsed_ms = 12u64,
                detail = detail.to_string(),
                "email sent"
            );
        });
        assert_eq!(lines.len(), 1);
        let mut line = lines.remove(0);
        assert!(
            line.remove("timestamp")
                .unwrap()
                .as_str()
                .unwrap()
                .ends_with('Z')
        );
        assert_eq!(
            Value::Object(line),
            json!({
                "level": "INFO",
                "message": "email sent",
                "outcome": "sent",
                "event_id": "e-1",
                "elapsed_ms": 12,
                "application_id": 3,
                "target": "onemail::logging::json_line::tests",
            })
        );
    }
}
