//! A Postgres server of the storm's own, which it may crash: `local/postgres.py serve`.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, NoTls};

use crate::support::patience::within_reason;

pub struct Postgres {
    config: Config,
    port: u16,
    keeper: Mutex<Keeper>,
}

/// The program that keeps the server. It stops it when our end of its standard input is closed, however that comes.
struct Keeper {
    program: Child,
    requests: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Postgres {
    pub async fn start() -> Self {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = project.join(".venv/bin/python");
        assert!(python.exists(), "no {}: run `make setup`", python.display());
        let mut program = Command::new(python)
            .args(["local/postgres.py", "serve"])
            .current_dir(project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let requests = program.stdin.take();
        let answers = BufReader::new(program.stdout.take().expect("it is piped")).lines();
        let mut keeper = Keeper {
            program,
            requests,
            answers,
        };
        let config: Config = keeper.answer().await.parse().expect("a Postgres URL");
        let port = config.get_ports()[0];
        Self {
            config,
            port,
            keeper: Mutex::new(keeper),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// As `pg_ctl restart -m immediate`: every session is cut, and what was committed is recovered. Gives when it
    /// began and when it had ended.
    pub async fn crash_and_recover(&self) -> (Instant, Instant) {
        let mut keeper = self.keeper.lock().await;
        let began = Instant::now();
        let requests = keeper.requests.as_mut().expect("it is closed at the end");
        requests
            .write_all(b"restart\n")
            .await
            .expect("the server's keeper runs");
        assert_eq!(keeper.answer().await, "ready");
        (began, Instant::now())
    }

    /// A session that goes to the server itself, past all proxies.
    ///
    /// # Errors
    /// The server is being restarted.
    pub async fn connect(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let mut config = self.config.clone();
        let (client, connection) = config.dbname(database).connect(NoTls).await?;
        // It ends with the client, or with the server.
        tokio::spawn(connection);
        Ok(client)
    }

    /// The server and its data are gone when this returns.
    pub async fn stop(self) {
        let mut keeper = self.keeper.into_inner();
        drop(keeper.requests.take());
        let ended = within_reason("the end of the server's keeper", keeper.program.wait()).await;
        assert!(ended.expect("it is our child").success());
    }
}

impl Keeper {
    async fn answer(&mut self) -> String {
        let line = within_reason("an answer of the server's keeper", self.answers.next_line());
        let line = line.await.expect("UTF-8");
        line.expect("local/postgres.py says above why it ended")
    }
}
