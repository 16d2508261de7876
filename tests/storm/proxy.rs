//! A proxy before Postgres that tells the chronicle of every claim and its end, and strikes at the worst moments: when
//! a claim or its settlement is about to reach Postgres, and when Postgres has done it and the worker doesn't know yet.

mod connection;
mod session;
mod statement;
mod strike;
mod wire;

use std::sync::Arc;

use tokio::net::TcpListener;

use crate::chronicle::Chronicle;
use crate::dice::Dice;
use crate::sky::Sky;
use crate::tally::Tally;
use crate::victims::Victims;

pub struct Proxy {
    port: u16,
    /// Connections that it struck.
    pub strikes: Arc<Tally>,
}

struct Shared {
    upstream_port: u16,
    dice: Dice,
    sky: Arc<Sky>,
    chronicle: Arc<Chronicle>,
    victims: Arc<Victims>,
    /// How often a moment has come for a key.
    moments: Tally,
    strikes: Arc<Tally>,
}

impl Proxy {
    pub async fn start(
        upstream_port: u16,
        dice: Dice,
        sky: Arc<Sky>,
        chronicle: Arc<Chronicle>,
        victims: Arc<Victims>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let strikes = Arc::new(Tally::default());
        let shared = Arc::new(Shared {
            upstream_port,
            dice,
            sky,
            chronicle,
            victims,
            moments: Tally::default(),
            strikes: strikes.clone(),
        });
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection::run(client, shared.clone()));
            }
        });
        Self { port, strikes }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}
