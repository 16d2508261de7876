//! The road to SES, on which a request can be stopped half-way.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::gate::Gate;
use crate::support::patience::within_reason;

/// What becomes of a request of which SES has got half.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// The rest waits until the worker is gone, and is lost with it.
    Hold,
    /// The rest is lost, and the worker's connection is reset.
    Reset,
}

pub struct Road {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    upstream_port: u16,
    half_way: Mutex<Option<(Then, Gate)>>,
    answers: watch::Sender<usize>,
}

impl Road {
    pub async fn start(upstream_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener
            .local_addr()
            .expect("a bound socket has an address")
            .port();
        let shared = Arc::new(Shared {
            upstream_port,
            half_way: Mutex::default(),
            answers: watch::Sender::new(0),
        });
        let roads = shared.clone();
        tokio::spawn(async move {
            while let Ok((worker, _)) = listener.accept().await {
                tokio::spawn(travel(worker, roads.clone()));
            }
        });
        Self { port, shared }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Stops the next request half-way; the gate opens when SES has got half of it.
    pub fn stop_half_way(&self, then: Then) -> Gate {
        let stopped = Gate::closed();
        *self.shared.half_way.lock().expect("no test panics here") = Some((then, stopped.clone()));
        stopped
    }

    /// Waits until an answer of SES's has arrived where the worker is.
    pub async fn answered(&self) {
        let mut answers = self.shared.answers.subscribe();
        within_reason("SES's answer", answers.wait_for(|answers| *answers > 0))
            .await
            .expect("the sender is in `shared`");
    }
}

async fn travel(mut worker: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut ses = TcpStream::connect(("127.0.0.1", shared.upstream_port)).await?;
    let request = whole_request(&mut worker).await?;
    let stop = shared.half_way.lock().expect("no test panics here").take();
    if let Some((then, stopped)) = stop {
        ses.write_all(&request[..request.len() / 2]).await?;
        stopped.open();
        return match then {
            // It ends with the worker.
            Then::Hold => worker.read(&mut [0]).await.map(|_| ()),
            Then::Reset => worker.set_zero_linger(),
        };
    }
    ses.write_all(&request).await?;
    let (mut from_worker, mut to_worker) = worker.split();
    let (mut from_ses, mut to_ses) = ses.split();
    let answers = async {
        let mut bytes = [0; 16 * 1024];
        loop {
            let length = from_ses.read(&mut bytes).await?;
            if length == 0 {
                return Ok(());
            }
            to_worker.write_all(&bytes[..length]).await?;
            shared.answers.send_modify(|answers| *answers += 1);
        }
    };
    tokio::select! {
        ended = answers => ended,
        ended = tokio::io::copy(&mut from_worker, &mut to_ses) => ended.map(|_| ()),
    }
}

/// Head and body.
async fn whole_request(worker: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    while length_of(&request).is_none_or(|length| request.len() < length) {
        if worker.read_buf(&mut request).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(request)
}

/// Known once the head is there.
fn length_of(request: &[u8]) -> Option<usize> {
    const END_OF_HEAD: &[u8] = b"\r\n\r\n";
    let windows = request.windows(END_OF_HEAD.len());
    let head = windows
        .enumerate()
        .find(|(_, window)| *window == END_OF_HEAD)?
        .0;
    let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
    let body = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let body: usize = body
        .and_then(|length| length.trim().parse().ok())
        .unwrap_or(0);
    Some(head + END_OF_HEAD.len() + body)
}
