//! A Postgres server that offers TLS with whatever certificate the test gives it: the machine's own PostgreSQL, since
//! the one of the wheel is built without TLS.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_postgres::{Client, Config, NoTls};

use super::certificate::{Certificate, Folder};
use super::patience::within_reason;

pub struct TlsServer {
    config: Config,
    certificate: Folder,
    /// It stops the server when our end of its standard input is closed, however that comes.
    program: Child,
    requests: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl TlsServer {
    /// Without TLS for now.
    pub async fn start() -> Self {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = project.join(".venv/bin/python");
        assert!(python.exists(), "no {}: run `make setup`", python.display());
        let certificate = Folder::new();
        let mut program = Command::new(python)
            .args(["local/postgres.py", "serve", "--system", "--tls"])
            .arg(certificate.path())
            .current_dir(project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let requests = program.stdin.take();
        let mut answers = BufReader::new(program.stdout.take().expect("it is piped")).lines();
        let url = answer(&mut answers).await;
        Self {
            config: url.parse().expect("a Postgres URL"),
            certificate,
            program,
            requests,
            answers,
        }
    }

    pub fn port(&self) -> u16 {
        self.config.get_ports()[0]
    }

    /// From now on the server shows this certificate; `None`: it speaks no TLS.
    pub async fn show(&mut self, certificate: Option<&Certificate>) {
        match certificate {
            Some(certificate) => {
                self.certificate.write("server.crt", &certificate.pem);
                self.certificate.write("server.key", &certificate.key_pem);
            }
            None => self.certificate.remove("server.crt"),
        }
        let requests = self.requests.as_mut().expect("it is closed at the end");
        let asked = requests.write_all(b"restart\n").await;
        asked.expect("the server's keeper runs");
        assert_eq!(answer(&mut self.answers).await, "ready");
    }

    /// A superuser's session, in plain text.
    pub async fn administrator(&self) -> Client {
        let connected = self.config.connect(NoTls).await;
        let (client, connection) = connected.expect("the server takes connections");
        // It ends with the client, or with the server.
        tokio::spawn(connection);
        client
    }

    /// The server and its data are gone when this returns.
    pub async fn stop(mut self) {
        drop(self.requests.take());
        let ended = within_reason("the end of the server's keeper", self.program.wait()).await;
        assert!(ended.expect("it is our child").success());
    }
}

async fn answer(answers: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = within_reason("an answer of the server's keeper", answers.next_line());
    let line = line.await.expect("UTF-8");
    line.expect("local/postgres.py says above why it ended")
}
