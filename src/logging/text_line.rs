//! The form of a line by hand, and in Lambda where text is asked for.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Compact, Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::mask::mask_addresses;

/// tracing's compact form, without addresses.
pub(super) struct TextLine(Format<Compact>);

impl TextLine {
    pub fn new() -> Self {
        Self(tracing_subscriber::fmt::format().compact())
    }
}

impl<S, N> FormatEvent<S, N> for TextLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0
            .format_event(context, Writer::new(&mut line), event)?;
        writer.write_str(&mask_addresses(&line))
    }
}
