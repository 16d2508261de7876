//! One connection through the proxy.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;

use super::message::{Backend, Frontend};
use super::{End, Rule, Shared, Then};
use crate::support::gate::Gate;

/// What becomes of the server's answers.
#[derive(Clone)]
enum Valve {
    Open,
    Held(Gate),
    Shut,
}

/// What the two directions of a connection tell each other.
struct Between {
    valve: watch::Sender<Valve>,
    round_trips_ended: watch::Sender<usize>,
}

pub async fn run(
    mut client: TcpStream,
    number: usize,
    mut end_of_all: watch::Receiver<End>,
    shared: Arc<Shared>,
) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", shared.upstream_port)).await else {
        shared.passing.send_modify(|count| *count -= 1);
        return;
    };
    // An answer must not wait for the next packet: the tests of round trips would see it.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));

    let end = {
        let between = Between {
            valve: watch::Sender::new(Valve::Open),
            round_trips_ended: watch::Sender::new(0),
        };
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            end = pass_requests(from_client, to_server, number, &between, &shared) => end.unwrap_or(End::Close),
            end = pass_answers(from_server, to_client, &between) => end.unwrap_or(End::Close),
            _ = end_of_all.changed() => *end_of_all.borrow(),
        }
    };
    if matches!(end, End::Reset) {
        let _ = client.set_zero_linger();
    }
    if matches!(end, End::Silence) {
        shared.passing.send_modify(|count| *count -= 1);
        std::future::pending::<()>().await;
    }
    drop((client, server));
    shared.passing.send_modify(|count| *count -= 1);
}

/// An end that comes when the server has answered.
struct Pending {
    end: End,
    done: Gate,
}

async fn pass_requests(
    mut from_client: ReadHalf<'_>,
    mut to_server: WriteHalf<'_>,
    number: usize,
    between: &Between,
    shared: &Shared,
) -> io::Result<End> {
    let mut frontend = Frontend::new(number);
    // The server says once that it is ready before anything was asked of it.
    let mut round_trips = 1;
    let mut pending: Option<Pending> = None;
    while from_client.read_buf(frontend.buffer()).await? > 0 {
        while let Some((message, bytes)) = frontend.next() {
            let ends_round_trip = message.ends_round_trip();
            round_trips += usize::from(ends_round_trip);
            if let Some(rule) = shared.meet(message) {
                match rule.meet(between) {
                    Met::Pass => {}
                    Met::Hold(gate) => hold(&gate, &mut from_client, frontend.buffer()).await?,
                    Met::End(end) => return Ok(end),
                    Met::EndWhenAnswered(end, done) => pending = Some(Pending { end, done }),
                }
            }
            to_server.write_all(&bytes).await?;
            if let Some(pending) = pending.take_if(|_| ends_round_trip) {
                return Ok(pending.answered(round_trips, between).await);
            }
        }
    }
    Ok(End::Close)
}

/// Waits for the gate. Should the client go away before, what it had sent is lost with it.
async fn hold(gate: &Gate, from_client: &mut ReadHalf<'_>, buffer: &mut Vec<u8>) -> io::Result<()> {
    loop {
        tokio::select! {
            () = gate.pass() => return Ok(()),
            read = from_client.read_buf(buffer) => if read? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            },
        }
    }
}

impl Pending {
    async fn answered(self, round_trips: usize, between: &Between) -> End {
        let mut ended = between.round_trips_ended.subscribe();
        let _ = ended.wait_for(|ended| *ended >= round_trips).await;
        self.done.open();
        self.end
    }
}

/// What a rule asks of the direction to the server.
enum Met {
    Pass,
    Hold(Gate),
    End(End),
    EndWhenAnswered(End, Gate),
}

impl Rule {
    fn meet(self, between: &Between) -> Met {
        match self.then {
            Then::Hold(gate) => {
                self.done.open();
                Met::Hold(gate)
            }
            Then::HoldReplies(gate) => {
                between.valve.send_replace(Valve::Held(gate));
                self.done.open();
                Met::Pass
            }
            Then::Swallow => {
                self.done.open();
                Met::End(End::Silence)
            }
            Then::Cut => {
                self.done.open();
                Met::End(End::Reset)
            }
            Then::SwallowReplies => {
                between.valve.send_replace(Valve::Shut);
                Met::EndWhenAnswered(End::Silence, self.done)
            }
            Then::CutReplies => {
                between.valve.send_replace(Valve::Shut);
                Met::EndWhenAnswered(End::Reset, self.done)
            }
        }
    }
}

async fn pass_answers(
    mut from_server: ReadHalf<'_>,
    mut to_client: WriteHalf<'_>,
    between: &Between,
) -> io::Result<End> {
    let mut backend = Backend::default();
    let mut bytes = [0; 16 * 1024];
    loop {
        let length = from_server.read(&mut bytes).await?;
        if length == 0 {
            return Ok(End::Close);
        }
        let ended = backend.round_trips_ended(&bytes[..length]);
        let valve = between.valve.borrow().clone();
        if let Valve::Held(gate) = &valve {
            gate.pass().await;
        }
        if !matches!(valve, Valve::Shut) {
            to_client.write_all(&bytes[..length]).await?;
        }
        between
            .round_trips_ended
            .send_modify(|count| *count += ended);
    }
}
