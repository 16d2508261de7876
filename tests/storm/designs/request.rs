//! A request to SES, as plain as can be: sent once, and without a word from SES in time it counts as failed.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_secs(3);

/// # Errors
/// SES didn't say that it took the email.
pub async fn send(url: &str, key: &str) -> anyhow::Result<()> {
    tokio::time::timeout(TIMEOUT, request(url, key)).await?
}

async fn request(url: &str, key: &str) -> anyhow::Result<()> {
    let rest = url.strip_prefix("http://").context("plain HTTP")?;
    let (address, path) = rest.split_once('/').context("a path")?;
    let body = json!({ "EmailTags": [{ "Name": "event_id", "Value": key }] }).to_string();
    let head = format!(
        "POST /{path}/v2/email/outbound-emails HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all((head + &body).as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        ensure!(stream.read_buf(&mut answer).await? > 0, "no whole answer");
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        ensure!(head.starts_with("HTTP/1.1 200"), "an error");
        let mut lines = head.lines();
        let length = lines.find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("a length")?.parse()?;
        if body.len() >= length {
            ensure!(body.contains("MessageId"), "no message id");
            return Ok(());
        }
    }
}
