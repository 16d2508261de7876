//! What passes on a connection, followed message by message: which claim is open, and how it ends.

mod batch;

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::chronicle::{ClaimNumber, End};

use super::Shared;
use super::statement::{Batch, Statement};
use super::strike::{How, Moment, Strike, When};
use super::wire::{Message, STARTUP, Stream};

/// Why a connection ends.
pub enum Over {
    /// The worker closed it, or died.
    ByWorker,
    /// Postgres closed it, or died.
    ByPostgres,
    Struck(How),
}

pub struct Session<'a> {
    shared: &'a Shared,
    /// By the application name of its connection.
    pub worker: String,
    /// The statement that was parsed last.
    sql: String,
    transaction: Option<Transaction>,
    /// The statement of a batch that the next `Sync` ends.
    batch: Option<Batch>,
    /// What is asked of Postgres and not answered, in its order. Postgres says once that it is ready before anything
    /// is asked.
    asked: VecDeque<Asked>,
    /// Of the round trip that the next `Sync` ends.
    strike_when_done: Option<How>,
    /// The command that Postgres completed last.
    completed: String,
}

/// The strike, if it comes once Postgres has done what was asked.
fn done(strike: Option<Strike>) -> Option<How> {
    strike
        .filter(|strike| strike.when == When::Done)
        .map(|strike| strike.how)
}

struct Transaction {
    key: String,
    of: Of,
}

enum Of {
    Worker { claim: ClaimNumber, in_doubt: bool },
    Feedback { ses_message_id: String },
}

#[derive(Default)]
struct Asked {
    ends_transaction: bool,
    strike: Option<How>,
    batch: Option<Batch>,
    /// The rows that came back: the key, and whether it was won.
    rows: Vec<(String, bool)>,
}

impl<'a> Session<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            worker: String::new(),
            sql: String::new(),
            transaction: None,
            batch: None,
            asked: VecDeque::from([Asked::default()]),
            strike_when_done: None,
            completed: String::new(),
        }
    }

    /// Until it is over.
    pub async fn pass(
        &mut self,
        worker: &mut TcpStream,
        postgres: &mut TcpStream,
    ) -> io::Result<Over> {
        let (mut from_worker, mut to_worker) = worker.split();
        let (mut from_postgres, mut to_postgres) = postgres.split();
        let mut requests = Stream::of_frontend();
        let mut answers = Stream::of_backend();
        loop {
            tokio::select! {
                read = from_worker.read_buf(&mut requests.buffer) => {
                    if !matches!(read, Ok(1..)) {
                        return Ok(Over::ByWorker);
                    }
                    let mut bytes = Vec::new();
                    let mut struck = None;
                    while let Some(message) = requests.next() {
                        struck = self.request(&message);
                        if struck.is_some() {
                            break;
                        }
                        bytes.extend(message.bytes);
                    }
                    if to_postgres.write_all(&bytes).await.is_err() {
                        return Ok(Over::ByPostgres);
                    }
                    if let Some(how) = struck {
                        return Ok(Over::Struck(how));
                    }
                }
                read = from_postgres.read_buf(&mut answers.buffer) => {
                    if !matches!(read, Ok(1..)) {
                        return Ok(Over::ByPostgres);
                    }
                    let mut bytes = Vec::new();
                    let mut struck = None;
                    while let Some(message) = answers.next() {
                        struck = self.answer(&message);
                        if struck.is_some() {
                            break;
                        }
                        bytes.extend(message.bytes);
                    }
                    if struck.is_none() && to_worker.write_all(&bytes).await.is_err() {
                        return Ok(Over::ByWorker);
                    }
                    if let Some(how) = struck {
                        return Ok(Over::Struck(how));
                    }
                }
            }
        }
    }

    /// Takes note of a request; gives how it is struck, if it must not reach Postgres.
    fn request(&mut self, message: &Message) -> Option<How> {
        let mut strike = None;
        match message.kind {
            STARTUP => {
                let name = message.setting("application_name").unwrap_or_default();
                self.worker = name.to_owned();
            }
            b'P' => self.sql = message.strings().nth(1).unwrap_or_default().to_owned(),
            b'B' => strike = self.bind(message),
            b'Q' => {
                let sql = message.strings().next().unwrap_or_default();
                if sql == "COMMIT" {
                    strike = self.strike_at_commit();
                }
                self.asked.push_back(Asked {
                    ends_transaction: matches!(sql, "COMMIT" | "ROLLBACK"),
                    strike: done(strike),
                    ..Asked::default()
                });
            }
            b'S' => self.asked.push_back(Asked {
                strike: self.strike_when_done.take(),
                batch: self.batch.take(),
                ..Asked::default()
            }),
            _ => {}
        }
        if message.kind == b'B' {
            self.strike_when_done = done(strike);
        }
        strike
            .filter(|strike| strike.when == When::Before)
            .map(|strike| strike.how)
    }

    fn bind(&mut self, message: &Message) -> Option<Strike> {
        match Statement::read(&self.sql, message)? {
            Statement::Claim { key } => {
                let claim = self.shared.chronicle.claim_begins(&key, &self.worker);
                let strike = self.shared.strike(Moment::Claim, &key);
                self.transaction = Some(Transaction {
                    key,
                    of: Of::Worker {
                        claim,
                        in_doubt: false,
                    },
                });
                strike
            }
            Statement::Unclaim => {
                if let Some(Transaction {
                    of: Of::Worker { in_doubt, .. },
                    ..
                }) = &mut self.transaction
                {
                    *in_doubt = true;
                }
                None
            }
            Statement::Told {
                key,
                ses_message_id,
            } => {
                let of = Of::Feedback { ses_message_id };
                self.transaction = Some(Transaction { key, of });
                None
            }
            Statement::OfBatch(batch) => {
                let strike = self.batch_begins(&batch);
                self.batch = Some(batch);
                strike
            }
        }
    }

    fn strike_at_commit(&self) -> Option<Strike> {
        let transaction = self.transaction.as_ref()?;
        let moment = match transaction.of {
            Of::Worker { .. } => Moment::Commit,
            Of::Feedback { .. } => Moment::Settlement,
        };
        self.shared.strike(moment, &transaction.key)
    }

    /// Takes note of an answer; gives how it is struck, if the worker must not get it.
    fn answer(&mut self, message: &Message) -> Option<How> {
        match message.kind {
            b'C' => {
                self.completed = message.strings().next().unwrap_or_default().to_owned();
                None
            }
            b'E' => {
                self.completed.clear();
                None
            }
            b'D' => {
                if let Some(asked) = self.asked.front_mut() {
                    asked.row(message);
                }
                None
            }
            b'Z' => {
                let asked = self.asked.pop_front()?;
                if asked.ends_transaction {
                    self.transaction_ended();
                }
                if let Some(batch) = &asked.batch
                    && !self.completed.is_empty()
                {
                    self.batch_ends(batch, &asked.rows);
                }
                asked.strike
            }
            _ => None,
        }
    }

    fn transaction_ended(&mut self) {
        // After a failure `COMMIT` is answered with "ROLLBACK".
        let committed = self.completed == "COMMIT";
        match self.transaction.take().map(|transaction| transaction.of) {
            Some(Of::Worker { claim, in_doubt }) => {
                let end = match (committed, in_doubt) {
                    (true, false) => End::Committed,
                    (true, true) => End::InDoubt,
                    (false, _) => End::RolledBack,
                };
                self.shared.chronicle.claim_ends(claim, end);
            }
            Some(Of::Feedback { ses_message_id }) if committed => {
                self.shared
                    .chronicle
                    .notification_is_processed(&ses_message_id);
            }
            _ => {}
        }
    }

    /// A claim that is open ends with it.
    pub fn ends(&self, over: &Over) {
        if let Some(Transaction {
            of: Of::Worker { claim, .. },
            ..
        }) = &self.transaction
        {
            let end = match over {
                Over::ByWorker => End::Dropped,
                Over::ByPostgres => End::EndedByPostgres,
                Over::Struck(_) => End::Lost,
            };
            self.shared.chronicle.claim_ends(*claim, end);
        }
    }
}
