//! The job board of `local/jobboard.sql`, in a database of its own.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, anyhow};
use onemail::claim::Row;
use onemail::emails::FolderError;
use onemail::receive::Event;
use tokio_postgres::types::{Json, Type};
use tokio_postgres::{Client, Config, NoTls};

use crate::query::Query;

/// A superuser's URL of a server on which databases may be made.
const SERVER_URL: &str = "ONEMAIL_TEST_DATABASE_URL";

pub struct Jobboard {
    server: Config,
    database: String,
    client: Client,
}

impl Jobboard {
    pub async fn create() -> anyhow::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let server = std::env::var(SERVER_URL).map_err(|_| {
            anyhow!(
                "{SERVER_URL} isn't set, so there is no Postgres to run recipient.sql on: use `make`, \
                 or put `.venv/bin/python local/postgres.py run --` before the command"
            )
        })?;
        let server: Config = server
            .parse()
            .with_context(|| format!("{SERVER_URL} must be a Postgres URL"))?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let database = format!("onemail_emails_{}_{number}", std::process::id());
        let create = format!("CREATE DATABASE {database} TEMPLATE template0");
        connect(&server).await?.batch_execute(&create).await?;

        let client = connect(server.clone().dbname(&database)).await?;
        let tables = concat!(env!("CARGO_MANIFEST_DIR"), "/local/jobboard.sql");
        let tables =
            fs::read_to_string(tables).with_context(|| format!("Failed to read {tables}"))?;
        client
            .batch_execute(&tables)
            .await
            .context("Failed to load local/jobboard.sql")?;
        Ok(Self {
            server,
            database,
            client,
        })
    }

    pub async fn drop(self) -> anyhow::Result<()> {
        drop(self.client);
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.database);
        Ok(connect(&self.server).await?.batch_execute(&drop).await?)
    }

    /// The rows that the folder's `recipient.sql` finds, as the function asks for them, but where nothing can be
    /// written: the query only reads.
    pub async fn rows(&self, event: &Event<'_>) -> Result<Vec<Row>, FolderError> {
        let query = Query::of(event.folder);
        let alone = self.client.prepare(query.alone).await;
        query.check_alone(alone)?;

        self.execute("BEGIN READ ONLY; SET LOCAL statement_timeout = '10s'")
            .await;
        let payload = Json(&event.fields);
        let found = self
            .client
            .query_typed(query.wrapped, &[(&payload, Type::JSONB)])
            .await;
        self.execute("ROLLBACK").await;
        match found {
            Ok(rows) => Ok(rows
                .iter()
                .map(|row| row.get::<_, Json<Row>>(0).0)
                .collect()),
            Err(error) => Err(query.wrapped_problem(&error)),
        }
    }

    async fn execute(&self, statement: &str) {
        self.client
            .batch_execute(statement)
            .await
            .expect("Postgres is still there");
    }
}

async fn connect(config: &Config) -> anyhow::Result<Client> {
    let connected = config.connect(NoTls).await;
    let (client, connection) =
        connected.with_context(|| format!("Failed to reach the server of {SERVER_URL}"))?;
    // It ends with the client.
    tokio::spawn(connection);
    Ok(client)
}
