//! The messages of Postgres's protocol, version 3, cut out of the stream.

/// A message of the frontend.
#[derive(Clone, Debug)]
pub struct Message {
    pub connection: usize,
    pub kind: Kind,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The request for TLS or the startup message: they alone have no type.
    Startup,
    Query,
    Parse,
    Bind,
    Sync,
    Other(u8),
}

impl Message {
    /// Whether the text is in the message as whole words: a statement is, and so is the value of a text parameter.
    /// `COMMIT` is not in `READ COMMITTED`.
    pub fn contains(&self, text: &str) -> bool {
        let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let mut places = self.body.windows(text.len()).enumerate();
        places.any(|(start, window)| {
            window == text.as_bytes()
                && !is_word(
                    start
                        .checked_sub(1)
                        .and_then(|before| self.body.get(before)),
                )
                && !is_word(self.body.get(start + text.len()))
        })
    }

    /// The SQL of a `Query` or a `Parse` message.
    pub fn sql(&self) -> Option<&str> {
        let strings = self.strings();
        match self.kind {
            Kind::Query => strings.first().copied(),
            Kind::Parse => strings.get(1).copied(),
            _ => None,
        }
    }

    /// The name under which a `Parse` message has its statement kept.
    pub fn statement_name(&self) -> Option<&str> {
        (self.kind == Kind::Parse).then(|| self.strings()[0])
    }

    fn strings(&self) -> Vec<&str> {
        self.body
            .split(|byte| *byte == 0)
            .map(|text| str::from_utf8(text).unwrap_or_default())
            .collect()
    }

    /// Whether the server answers with "ready for the next" when it has come to this message.
    pub fn ends_round_trip(&self) -> bool {
        matches!(self.kind, Kind::Query | Kind::Sync)
    }
}

/// Cuts the frontend's stream into messages.
pub struct Frontend {
    connection: usize,
    started: bool,
    buffer: Vec<u8>,
}

impl Frontend {
    pub fn new(connection: usize) -> Self {
        Self {
            connection,
            started: false,
            buffer: Vec::new(),
        }
    }

    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The next message, with the bytes to pass on.
    pub fn next(&mut self) -> Option<(Message, Vec<u8>)> {
        const PROTOCOL_3_MAJOR: u8 = 3;
        let header = if self.started { 1 } else { 0 };
        let bytes = take(&mut self.buffer, header)?;
        let kind = if self.started {
            Kind::of(bytes[0])
        } else {
            Kind::Startup
        };
        let body = bytes[header + LENGTH..].to_vec();
        // A request for TLS is answered with one byte and followed by another message without a type.
        self.started |= body.get(1) == Some(&PROTOCOL_3_MAJOR);
        Some((
            Message {
                connection: self.connection,
                kind,
                body,
            },
            bytes,
        ))
    }
}

impl Kind {
    fn of(code: u8) -> Self {
        match code {
            b'Q' => Self::Query,
            b'P' => Self::Parse,
            b'B' => Self::Bind,
            b'S' => Self::Sync,
            other => Self::Other(other),
        }
    }
}

/// Counts how often the server has said that it is ready for the next round trip.
#[derive(Default)]
pub struct Backend {
    buffer: Vec<u8>,
    answered_tls: bool,
}

impl Backend {
    /// Takes in what the server sent, and gives how many round trips it ended.
    pub fn round_trips_ended(&mut self, bytes: &[u8]) -> usize {
        const READY_FOR_QUERY: u8 = b'Z';
        const NO_TLS: u8 = b'N';
        self.buffer.extend_from_slice(bytes);
        // The answer to a request for TLS is one byte alone. The same byte starts a notice, which never comes first.
        if !self.answered_tls && self.buffer.first() == Some(&NO_TLS) {
            self.buffer.remove(0);
        }
        self.answered_tls |= !self.buffer.is_empty();
        let mut ended = 0;
        while let Some(message) = take(&mut self.buffer, 1) {
            ended += usize::from(message[0] == READY_FOR_QUERY);
        }
        ended
    }
}

/// A message's length, which counts itself but not the type before it.
const LENGTH: usize = 4;

/// Cuts the first message from the buffer, if it is all there.
fn take(buffer: &mut Vec<u8>, header: usize) -> Option<Vec<u8>> {
    let length = buffer
        .get(header..header + LENGTH)?
        .try_into()
        .expect("it is of this length");
    let end = header + u32::from_be_bytes(length) as usize;
    (buffer.len() >= end).then(|| buffer.drain(..end).collect())
}
