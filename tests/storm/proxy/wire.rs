//! As much of Postgres's protocol, version 3, as it takes to see claims and commits pass.

/// Cuts a stream into messages. The first message of a frontend has no type.
pub struct Stream {
    typed: bool,
    pub buffer: Vec<u8>,
}

impl Stream {
    pub fn of_frontend() -> Self {
        Self {
            typed: false,
            buffer: Vec::new(),
        }
    }

    pub fn of_backend() -> Self {
        Self {
            typed: true,
            buffer: Vec::new(),
        }
    }

    pub fn next(&mut self) -> Option<Message> {
        const LENGTH: usize = 4;
        let header = usize::from(self.typed);
        let length = self.buffer.get(header..header + LENGTH)?;
        let length = u32::from_be_bytes(length.try_into().expect("it is of this length"));
        let end = header + length as usize;
        if self.buffer.len() < end {
            return None;
        }
        let bytes: Vec<u8> = self.buffer.drain(..end).collect();
        let kind = if self.typed { bytes[0] } else { STARTUP };
        self.typed = true;
        Some(Message {
            kind,
            body: header + LENGTH,
            bytes,
        })
    }
}

/// No message has this type.
pub const STARTUP: u8 = 0;

pub struct Message {
    pub kind: u8,
    pub bytes: Vec<u8>,
    body: usize,
}

impl Message {
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// The strings of a body that consists of strings, of which each ends with a NUL.
    pub fn strings(&self) -> impl Iterator<Item = &str> {
        let parts = self.body().split(|byte| *byte == 0);
        parts.map(|part| str::from_utf8(part).unwrap_or_default())
    }

    /// What the startup message says of this.
    pub fn setting(&self, name: &str) -> Option<&str> {
        // Four bytes of version come first.
        let parts = self.bytes[self.body + 4..].split(|byte| *byte == 0);
        let mut strings = parts.map(|part| str::from_utf8(part).unwrap_or_default());
        strings.find(|string| *string == name)?;
        strings.next()
    }

    /// A text among the values of a `Bind`.
    pub fn text(&self, number: usize) -> Option<&str> {
        str::from_utf8(self.value(number)?).ok()
    }

    /// A number of eight bytes among them.
    pub fn number(&self, number: usize) -> Option<[u8; 8]> {
        self.value(number)?.try_into().ok()
    }

    /// An array of texts among them.
    pub fn texts(&self, number: usize) -> Vec<String> {
        // Dimensions, whether there are NULLs, the type of the elements; then length and lower bound of the dimension.
        const HEADER: usize = 5 * 4;
        let value = self.value(number).unwrap_or_default();
        let elements = value.get(HEADER..).unwrap_or_default();
        let texts = values(elements).map(|text| String::from_utf8_lossy(text).into_owned());
        texts.collect()
    }

    fn value(&self, number: usize) -> Option<&[u8]> {
        let mut rest = self.body();
        for _ in ["portal", "statement"] {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = &rest[end + 1..];
        }
        let formats = take_u16(&mut rest)?;
        rest = rest.get(2 * usize::from(formats)..)?;
        take_u16(&mut rest)?;
        values(rest).nth(number)
    }

    /// The columns of a `DataRow`.
    pub fn columns(&self) -> impl Iterator<Item = &[u8]> {
        values(self.body().get(2..).unwrap_or_default())
    }
}

/// Each comes after its length; less than nothing is NULL.
fn values(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let (value, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        Some(value)
    })
}

fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    let (first, rest) = bytes.split_first_chunk::<2>()?;
    *bytes = rest;
    Some(u16::from_be_bytes(*first))
}
