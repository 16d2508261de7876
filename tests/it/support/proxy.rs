//! A proxy before Postgres that reads the frontend's half of the protocol and can, at a chosen message, hold, cut or
//! swallow what passes. What a network, a failover or a crash does at the worst moment, it does at that moment.

mod connection;
mod message;
mod port;

use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::watch;

pub use message::Message;
use port::Port;

use super::gate::Gate;
use super::patience::within_reason;

/// What happens at the chosen message.
///
/// "The server has done it" means that Postgres has answered the whole of the message's round trip, up to the point
/// where it is ready for the next; the client gets none of that, nor the answers that were on their way before it.
#[derive(Clone, Debug)]
pub enum Then {
    /// The message and whatever follows wait for the gate.
    Hold(Gate),
    /// The message passes; answers wait for the gate.
    HoldReplies(Gate),
    /// Neither the message nor anything later passes. Nobody is told: the connections stay open.
    Swallow,
    /// The server has done it, and from then on the client hears nothing. Nobody is told.
    SwallowReplies,
    /// The message doesn't pass, and the client's connection is reset.
    Cut,
    /// The server has done it, and the client's connection is reset.
    CutReplies,
}

/// What becomes of every connection at once.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Closed in order, as by a server that shuts down.
    Close,
    /// Reset, as by a server that has crashed.
    Reset,
    /// Open, but nothing passes and nobody is told, as behind a NAT that forgot the connection.
    Silence,
}

pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    upstream_port: u16,
    rules: Mutex<Vec<Rule>>,
    messages: watch::Sender<Vec<Message>>,
    end_of_all: watch::Sender<End>,
    /// Connections through which anything still passes.
    passing: watch::Sender<usize>,
    door_open: watch::Sender<bool>,
    listening: watch::Sender<bool>,
}

/// Something to do once, at the first message that has this text in it.
struct Rule {
    text: String,
    then: Then,
    done: Gate,
}

/// Tells when a rule has come to pass.
pub struct Happening(Gate);

impl Happening {
    /// Waits until it has happened: for an end after the server has done it, until the server has.
    pub async fn happened(&self) {
        within_reason("the proxy's rule to apply", self.0.pass()).await;
    }
}

impl Proxy {
    pub async fn start(upstream_port: u16) -> Self {
        let port = Port::free().expect("a free port");
        let number = port.number();
        let listener = port.listen().expect("the port is ours");
        let shared = Arc::new(Shared {
            upstream_port,
            rules: Mutex::default(),
            messages: watch::Sender::new(Vec::new()),
            end_of_all: watch::Sender::new(End::Close),
            passing: watch::Sender::new(0),
            door_open: watch::Sender::new(true),
            listening: watch::Sender::new(true),
        });
        tokio::spawn(accept(port, listener, shared.clone()));
        Self {
            port: number,
            shared,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Does this once, at the first message from now on that has `text` in it, on whichever connection.
    pub fn at(&self, text: &str, then: Then) -> Happening {
        let done = Gate::closed();
        let rule = Rule {
            text: text.to_owned(),
            then,
            done: done.clone(),
        };
        self.shared
            .rules
            .lock()
            .expect("no test panics here")
            .push(rule);
        Happening(done)
    }

    /// Takes back what has not come to pass.
    pub fn forget_rules(&self) {
        self.shared
            .rules
            .lock()
            .expect("no test panics here")
            .clear();
    }

    /// Waits until `count` messages with `text` in them have passed or been stopped.
    pub async fn seen(&self, count: usize, text: &str) {
        let mut messages = self.shared.messages.subscribe();
        let seen = messages
            .wait_for(|all| all.iter().filter(|message| message.contains(text)).count() >= count);
        within_reason(&format!("{count} message(s) with {text:?}"), seen)
            .await
            .expect("the sender is in `shared`");
    }

    /// Every message of the clients so far.
    pub fn messages(&self) -> Vec<Message> {
        self.shared.messages.borrow().clone()
    }

    /// Ends all connections, and waits until each has ended.
    pub async fn end_connections(&self, end: End) {
        self.shared.end_of_all.send_replace(end);
        let mut passing = self.shared.passing.subscribe();
        let none = passing.wait_for(|count| *count == 0);
        within_reason("the connections to end", none)
            .await
            .expect("the sender is in `shared`");
    }

    /// From now on nobody listens on the port.
    pub async fn refuse_connections(&self) {
        self.shared.door_open.send_replace(false);
        self.listens(false).await;
    }

    /// From now on somebody listens again.
    pub async fn take_connections(&self) {
        self.shared.door_open.send_replace(true);
        self.listens(true).await;
    }

    async fn listens(&self, whether: bool) {
        let mut listening = self.shared.listening.subscribe();
        let listens = listening.wait_for(|listening| *listening == whether);
        within_reason("the port to be closed, or open", listens)
            .await
            .expect("the sender is in `shared`");
    }
}

async fn accept(port: Port, listener: TcpListener, shared: Arc<Shared>) {
    let mut listener = Some(listener);
    let mut door_open = shared.door_open.subscribe();
    let mut number = 0;
    loop {
        let Some(listening) = &listener else {
            let _ = door_open.wait_for(|open| *open).await;
            listener = Some(port.listen().expect("the port is ours"));
            shared.listening.send_replace(true);
            continue;
        };
        tokio::select! {
            Ok((client, _)) = listening.accept() => {
                number += 1;
                shared.passing.send_modify(|count| *count += 1);
                // Subscribed before anything passes: only what the test says from now on is about this connection.
                tokio::spawn(connection::run(client, number, shared.end_of_all.subscribe(), shared.clone()));
            }
            Ok(_) = door_open.wait_for(|open| !*open) => {
                listener = None;
                shared.listening.send_replace(false);
            }
        }
    }
}

impl Shared {
    /// Takes note of the message, and gives the rule that it meets.
    fn meet(&self, message: Message) -> Option<Rule> {
        let rule = {
            let mut rules = self.rules.lock().expect("no test panics here");
            let met = rules.iter().position(|rule| message.contains(&rule.text));
            met.map(|index| rules.remove(index))
        };
        self.messages.send_modify(|messages| messages.push(message));
        rule
    }
}
