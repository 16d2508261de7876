//! A door before Postgres that turns connections away with an error, as the server does to whom it doesn't let in.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

pub struct Door {
    port: u16,
    rules: Arc<Mutex<Rules>>,
}

#[derive(Default)]
struct Rules {
    /// How many more are turned away, and with which code.
    next: usize,
    code: String,
    turned_away: usize,
}

impl Door {
    pub async fn start(upstream_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener
            .local_addr()
            .expect("a bound socket has an address")
            .port();
        let rules = Arc::new(Mutex::new(Rules::default()));
        let shared = rules.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(receive(client, upstream_port, shared.clone()));
            }
        });
        Self { port, rules }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Turns away the next `count` connections with this code.
    pub fn turn_away(&self, count: usize, code: &str) {
        let mut rules = self.rules.lock().expect("no test panics here");
        rules.next = count;
        code.clone_into(&mut rules.code);
    }

    /// How many were turned away so far.
    pub fn turned_away(&self) -> usize {
        self.rules.lock().expect("no test panics here").turned_away
    }
}

/// Whether the next one is turned away, and with which code.
fn refusal(rules: &Mutex<Rules>) -> Option<String> {
    let mut rules = rules.lock().expect("no test panics here");
    rules.next = rules.next.checked_sub(1)?;
    rules.turned_away += 1;
    Some(rules.code.clone())
}

async fn receive(
    mut client: TcpStream,
    upstream_port: u16,
    rules: Arc<Mutex<Rules>>,
) -> io::Result<()> {
    let Some(code) = refusal(&rules) else {
        let mut server = TcpStream::connect(("127.0.0.1", upstream_port)).await?;
        copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    };
    // A request for TLS comes first, which is declined with one byte; then the startup message.
    const REQUEST_FOR_TLS: u32 = 80_877_103;
    loop {
        let length = client.read_u32().await?;
        let version = client.read_u32().await?;
        let mut rest = vec![0; (length as usize).saturating_sub(8)];
        client.read_exact(&mut rest).await?;
        if version != REQUEST_FOR_TLS {
            break;
        }
        client.write_all(b"N").await?;
    }
    client.write_all(&error(&code)).await?;
    client.shutdown().await
}

/// What the server says to whom it doesn't let in: <https://www.postgresql.org/docs/current/protocol-error-fields.html>.
pub fn error(code: &str) -> Vec<u8> {
    let mut fields = Vec::new();
    for (kind, value) in [
        (b'S', "FATAL"),
        (b'V', "FATAL"),
        (b'C', code),
        (b'M', "the door is closed"),
    ] {
        fields.push(kind);
        fields.extend_from_slice(value.as_bytes());
        fields.push(0);
    }
    fields.push(0);
    let length = u32::try_from(fields.len() + 4).expect("a short message");
    let mut message = vec![b'E'];
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(&fields);
    message
}
