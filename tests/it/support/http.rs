//! As much of HTTP/1.1 as a stand-in server needs. Raw, so that a test can break it where a real server would.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than any request of these tests; a request that claims more is a fault worth a failed test.
const LARGEST: usize = 64 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// The next whole request, or `None` when the client has closed. Dropping the future loses nothing: what was
    /// read stays in the buffer.
    pub async fn next_request(&mut self) -> io::Result<Option<Request>> {
        loop {
            if let Some((request, length)) = parse(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(Some(request));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    pub async fn reply(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        self.write(&reply(status, headers, body)).await
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }
}

/// A reply in the form that goes over the wire. It doesn't say whether the connection stays open: as HTTP/1.1 has
/// it, that means it does.
pub fn reply(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status} -\r\ncontent-length: {}\r\n", body.len()).into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// The request at the start of `bytes` and its length, if it is all there.
fn parse(bytes: &[u8]) -> io::Result<Option<(Request, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head_length) = head.parse(bytes).map_err(io::Error::other)?
    else {
        return Ok(None);
    };
    let mut request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: head.path.unwrap_or_default().to_owned(),
        headers: head.headers.iter().map(owned).collect(),
        body: Vec::new(),
    };

    let rest = &bytes[head_length..];
    let body = match request.header("transfer-encoding") {
        Some("chunked") => chunked_body(rest)?,
        _ => sized_body(rest, request.header("content-length").unwrap_or("0"))?,
    };
    Ok(body.map(|(body, length)| {
        request.body = body;
        (request, head_length + length)
    }))
}

fn owned(header: &httparse::Header<'_>) -> (String, String) {
    let value = String::from_utf8_lossy(header.value).into_owned();
    (header.name.to_owned(), value)
}

fn sized_body(bytes: &[u8], length: &str) -> io::Result<Option<(Vec<u8>, usize)>> {
    let length: usize = length.parse().map_err(io::Error::other)?;
    if length > LARGEST {
        return Err(io::Error::other(
            "a body larger than any of these tests sends",
        ));
    }
    Ok(bytes.get(..length).map(|body| (body.to_vec(), length)))
}

fn chunked_body(bytes: &[u8]) -> io::Result<Option<(Vec<u8>, usize)>> {
    const LINE_END: usize = 2;
    let mut body = Vec::new();
    let mut position = 0;
    loop {
        let size = httparse::parse_chunk_size(&bytes[position..]);
        let httparse::Status::Complete((start, length)) =
            size.map_err(|_| io::Error::other("no chunk"))?
        else {
            return Ok(None);
        };
        let start = position + start;
        let end = start + usize::try_from(length).map_err(io::Error::other)?;
        let Some(chunk) = bytes.get(start..end) else {
            return Ok(None);
        };
        if bytes.len() < end + LINE_END {
            return Ok(None);
        }
        body.extend_from_slice(chunk);
        position = end + LINE_END;
        if length == 0 {
            return Ok(Some((body, position)));
        }
    }
}
