//! What each design does with a message.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls};

use super::Design;
use super::request::send;

const CLAIM: &str =
    "INSERT INTO processed_events (event_id) VALUES ($1) ON CONFLICT (event_id) DO NOTHING";
const CHECK: &str = "SELECT 1 FROM processed_events WHERE event_id = $1";

/// Longer than nearly every send, as whoever picks such a time believes.
const LOCK_EXPIRES: Duration = Duration::from_millis(1500);

pub struct Attempt<'a> {
    pub client: &'a Client,
    pub ses_url: &'a str,
    pub locks: &'a Locks,
    pub key: &'a str,
}

impl Attempt<'_> {
    /// # Errors
    /// The message comes back.
    pub async fn make(&self, design: Design) -> anyhow::Result<()> {
        match design {
            Design::ClaimFirst => {
                if self.claim().await? {
                    self.send().await?;
                }
            }
            Design::SendFirst => {
                self.send().await?;
                self.claim().await?;
            }
            Design::CheckThenMark => self.check_send_mark().await?,
            Design::ExpiringLock => {
                let Some(lock) = self.locks.take(self.key) else {
                    bail!("somebody else is at work on it");
                };
                let made = self.check_send_mark().await;
                self.locks.give_back(self.key, lock);
                made?;
            }
            Design::OneTransaction => {
                self.client.batch_execute("BEGIN").await?;
                if self.claim().await?
                    && let Err(error) = self.send().await
                {
                    self.client.batch_execute("ROLLBACK").await?;
                    return Err(error);
                }
                self.client.batch_execute("COMMIT").await?;
            }
        }
        Ok(())
    }

    async fn check_send_mark(&self) -> anyhow::Result<()> {
        let rows = self
            .client
            .query_typed(CHECK, &[(&self.key, Type::TEXT)])
            .await?;
        if rows.is_empty() {
            self.send().await?;
            self.claim().await?;
        }
        Ok(())
    }

    /// Gives whether nobody had it.
    async fn claim(&self) -> anyhow::Result<bool> {
        let inserted = self
            .client
            .execute_typed(CLAIM, &[(&self.key, Type::TEXT)])
            .await?;
        Ok(inserted == 1)
    }

    async fn send(&self) -> anyhow::Result<()> {
        send(self.ses_url, self.key)
            .await
            .context("SES did not say that it took it")
    }
}

/// A lock for each key, which expires: what Redis does with `SET key value NX PX`.
#[derive(Default)]
pub struct Locks(Mutex<HashMap<String, Instant>>);

impl Locks {
    /// When it expires, if it could be had.
    fn take(&self, key: &str) -> Option<Instant> {
        let mut locks = self.0.lock().expect("nobody panics here");
        let now = Instant::now();
        if locks.get(key).is_some_and(|expires| *expires > now) {
            return None;
        }
        locks.insert(key.to_owned(), now + LOCK_EXPIRES);
        Some(now + LOCK_EXPIRES)
    }

    /// If it is still the same lock, as a careful user of Redis makes sure.
    fn give_back(&self, key: &str, lock: Instant) {
        let mut locks = self.0.lock().expect("nobody panics here");
        if locks.get(key) == Some(&lock) {
            locks.remove(key);
        }
    }
}

pub async fn connect(port: u16, database: &str, worker: &str) -> anyhow::Result<Client> {
    let (client, connection) = Config::new()
        .host("127.0.0.1")
        .port(port)
        .user("postgres")
        .dbname(database)
        .application_name(worker)
        .ssl_mode(tokio_postgres::config::SslMode::Disable)
        .connect_timeout(Duration::from_secs(2))
        .connect(NoTls)
        .await?;
    // It ends with the client.
    tokio::spawn(connection);
    Ok(client)
}
