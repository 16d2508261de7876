//! A job board and a ledger for each test, on one server.
//!
//! A test has a role and a schema of its own in a database that all share: that is a tenth of the work of a database
//! of its own. The role's `search_path` names the schema first, which is where the function must look.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row};

use super::by_hand;
use super::environment::Environment;
use super::patience::within_reason;

/// A superuser's URL of a server on which the tests may make a database and roles. They are not dropped: the server
/// is as short-lived as the run.
const SERVER_URL: &str = "ONEMAIL_TEST_DATABASE_URL";

pub struct Database {
    /// Of the role and of the schema.
    name: String,
    client: Client,
}

/// A row of the ledger.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    pub event_id: String,
    pub event_type: String,
    pub outcome: String,
    pub ses_message_id: Option<String>,
    pub settled_by: String,
    pub payload_sha256: Vec<u8>,
}

impl Claim {
    fn read(row: &Row) -> Self {
        Self {
            event_id: row.get("event_id"),
            event_type: row.get("event_type"),
            outcome: row.get("outcome"),
            ses_message_id: row.get("ses_message_id"),
            settled_by: row.get("settled_by"),
            payload_sha256: row.get("payload_sha256"),
        }
    }
}

/// A row of what SES said of emails.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Told {
    pub event_id: Option<String>,
    pub ses_message_id: Option<String>,
    pub kind: String,
    pub detail: Value,
}

impl Told {
    fn read(row: &Row) -> Self {
        Self {
            event_id: row.get("event_id"),
            ses_message_id: row.get("ses_message_id"),
            kind: row.get("kind"),
            detail: row.get("detail"),
        }
    }
}

impl Database {
    /// A job board and an empty ledger.
    pub async fn create() -> Self {
        let database = Self::create_empty().await;
        database.fill().await;
        database
    }

    /// Makes the job board and the ledger in an empty schema.
    pub async fn fill(&self) {
        self.execute(shared().await).await;
    }

    /// A schema without a table.
    pub async fn create_empty() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        shared().await;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let create = format!(
            "CREATE ROLE {name} SUPERUSER LOGIN; \
             CREATE SCHEMA {name} AUTHORIZATION {name}; \
             ALTER ROLE {name} SET search_path = {name}"
        );
        let administrator = connect(&shared_database()).await;
        let created = administrator.batch_execute(&create).await;
        created.expect("the server allows another role");
        let client = connect(shared_database().user(&name)).await;
        Self { name, client }
    }

    /// From now on the server asks the role for this password. Sessions that are open stay so.
    pub async fn set_password(&self, password: &str) {
        let set = format!(
            "DO $do$ BEGIN CREATE ROLE asked_for_password; \
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $do$; \
             GRANT asked_for_password TO {name}; ALTER ROLE {name} PASSWORD $password${password}$password$",
            name = self.name
        );
        self.execute(&set).await;
    }

    /// Of its role, and of its schema.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> String {
        self.url_at(server_port())
    }

    /// The URL over a proxy.
    pub fn url_at(&self, port: u16) -> String {
        let database = shared_name();
        format!("postgresql://{}@127.0.0.1:{port}/{database}", self.name)
    }

    pub async fn execute(&self, statements: &str) {
        self.client
            .batch_execute(statements)
            .await
            .expect("the test's statements are right");
    }

    pub async fn query(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Vec<Row> {
        self.client
            .query(query, parameters)
            .await
            .expect("the test's query is right")
    }

    async fn insert(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> i64 {
        self.query(query, parameters).await[0].get(0)
    }

    /// All rows of the ledger, in the order of their keys.
    pub async fn claims(&self) -> Vec<Claim> {
        let rows = self
            .query("SELECT * FROM processed_events ORDER BY event_id", &[])
            .await;
        rows.iter().map(Claim::read).collect()
    }

    pub async fn claim(&self, event_id: &str) -> Option<Claim> {
        self.claims()
            .await
            .into_iter()
            .find(|claim| claim.event_id == event_id)
    }

    /// What SES said, in the order in which it happened.
    pub async fn told(&self) -> Vec<Told> {
        let query = "SELECT * FROM email_feedback ORDER BY occurred_at, kind, ses_message_id";
        self.query(query, &[])
            .await
            .iter()
            .map(Told::read)
            .collect()
    }

    /// Asserts that the ledger has exactly these keys with these outcomes, in the order of the keys.
    #[track_caller]
    pub fn assert_claims(&self, expected: &[(&str, &str)]) -> impl Future<Output = ()> {
        self.assert_claims_at(std::panic::Location::caller(), expected)
    }

    /// The same for an assertion that stands there.
    pub async fn assert_claims_at(
        &self,
        caller: &'static std::panic::Location<'static>,
        expected: &[(&str, &str)],
    ) {
        let claims = self.claims().await;
        let found: Vec<(&str, &str)> = claims
            .iter()
            .map(|claim| (claim.event_id.as_str(), claim.outcome.as_str()))
            .collect();
        assert!(
            found == expected,
            "{caller}: the ledger has {found:?}, not {expected:?}"
        );
    }

    /// A new application for "Backend Engineer" at Acme, and the new candidate who made it.
    pub async fn application_of(&self, first_name: &str, last_name: &str, email: &str) -> i64 {
        let user = self.user(first_name, last_name, email).await;
        self.application(user, 51).await
    }

    /// A new application of Sam's, for a new job at a new company.
    pub async fn application_for(&self, job_title: &str, company: &str) -> i64 {
        let company = self.company(company).await;
        let insert = "INSERT INTO jobs_job (title, company_id) VALUES ($1, $2) RETURNING id";
        let job = self.insert(insert, &[&job_title, &company]).await;
        self.application(5, job).await
    }

    /// A new order with this contact.
    pub async fn order_of(&self, contact_email: &str, company: &str, item: &str) -> i64 {
        let company = self.company(company).await;
        let insert = "INSERT INTO billing_order (company_id, contact_email, item, total_cents, currency) \
                      VALUES ($1, $2, $3, 49900, 'EUR') RETURNING id";
        self.insert(insert, &[&company, &contact_email, &item])
            .await
    }

    async fn user(&self, first_name: &str, last_name: &str, email: &str) -> i64 {
        let insert =
            "INSERT INTO auth_user (email, first_name, last_name) VALUES ($1, $2, $3) RETURNING id";
        self.insert(insert, &[&email, &first_name, &last_name])
            .await
    }

    async fn company(&self, name: &str) -> i64 {
        self.insert(
            "INSERT INTO jobs_company (name) VALUES ($1) RETURNING id",
            &[&name],
        )
        .await
    }

    async fn application(&self, user: i64, job: i64) -> i64 {
        let insert =
            "INSERT INTO jobs_candidate (user_id, locale) VALUES ($1, 'en-GB') RETURNING id";
        let candidate = self.insert(insert, &[&user]).await;
        let insert = "INSERT INTO jobs_application (job_id, candidate_id, status) \
                      VALUES ($1, $2, 'reviewing') RETURNING id";
        self.insert(insert, &[&job, &candidate]).await
    }

    /// Waits until `count` of the function's sessions wait for a lock: each has met a claim that is not committed.
    pub async fn sessions_blocked(&self, count: i64) {
        let blocked = "SELECT count(*) FROM pg_stat_activity \
                       WHERE usename = current_user AND wait_event_type = 'Lock'";
        self.until("a session that waits for a lock", blocked, count)
            .await;
    }

    /// Waits until a session of the function waits for a lock.
    pub async fn somebody_blocked(&self) {
        let blocked = "SELECT least(count(*), 1) FROM pg_stat_activity \
                       WHERE usename = current_user AND wait_event_type = 'Lock'";
        self.until("a session that waits for a lock", blocked, 1)
            .await;
    }

    /// Ends the function's sessions that are inside a transaction and wait for its next statement, as a failover or
    /// an administrator does; waits until they are gone.
    pub async fn end_open_transactions(&self) {
        let open = "usename = current_user AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'";
        self.query(
            &format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {open}"),
            &[],
        )
        .await;
        let count = format!("SELECT count(*) FROM pg_stat_activity WHERE {open}");
        self.until("the sessions to be gone", &count, 0).await;
    }

    /// Ends all sessions of the function, and waits until they are gone.
    pub async fn end_other_sessions(&self) {
        let others = "usename = current_user AND pid <> pg_backend_pid()";
        self.query(
            &format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"),
            &[],
        )
        .await;
        let count = format!("SELECT count(*) FROM pg_stat_activity WHERE {others}");
        self.until("the sessions to be gone", &count, 0).await;
    }

    /// Waits until all transactions of the function are over: a killed process's session takes a moment to notice.
    pub async fn transactions_over(&self) {
        let open = "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user \
                    AND pid <> pg_backend_pid() AND state <> 'idle'";
        self.until("the transactions to be over", open, 0).await;
    }

    /// Waits until the query counts so many. Postgres sends no signal for what its sessions do: the one thing here
    /// that is asked for again and again.
    pub async fn until(&self, what: &str, count: &str, expected: i64) {
        let reached = async {
            while self.query(count, &[]).await[0].get::<_, i64>(0) != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within_reason(what, reached).await;
    }

    /// The same schema, on a connection of its own.
    pub async fn another_handle(&self) -> Self {
        Self {
            name: self.name.clone(),
            client: self.neighbour().await,
        }
    }

    /// A transaction of somebody else, on a connection of its own.
    pub async fn neighbour(&self) -> Client {
        connect(shared_database().user(&self.name)).await
    }
}

/// The statements that fill a test's schema. The first call makes the database, and migrates it by hand to see that
/// this works at all; the tests then get what it made from the same files, which is quicker.
async fn shared() -> &'static str {
    static STATEMENTS: OnceCell<String> = OnceCell::const_new();
    let make = || async {
        let administrator = connect(server()).await;
        let create = format!("CREATE DATABASE {}", shared_name());
        let created = administrator.batch_execute(&create).await;
        created.expect("the server allows another database");

        let url = format!(
            "postgresql://postgres@127.0.0.1:{}/{}",
            server_port(),
            shared_name()
        );
        let migrated = by_hand::run(&Environment::migrate(&url), &["migrate", "-"], "{}").await;
        assert!(migrated.success, "`onemail migrate` failed: {migrated:?}");

        let mut statements = String::new();
        for file in migrations()
            .into_iter()
            .chain([project().join("local/jobboard.sql")])
        {
            let text = std::fs::read_to_string(&file);
            let text = text.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            writeln!(statements, "{text};").expect("a string grows");
        }
        statements + "CREATE TABLE onemail_migrations AS TABLE public.onemail_migrations"
    };
    STATEMENTS.get_or_init(make).await
}

/// The migrations in the order of their versions.
pub fn migrations() -> Vec<PathBuf> {
    let version = |file: &PathBuf| -> u32 {
        let name = file.file_name().and_then(|name| name.to_str());
        let version = name.and_then(|name| name.strip_prefix('V')?.split_once("__"));
        let version = version.and_then(|(version, _)| version.parse().ok());
        version.unwrap_or_else(|| panic!("{} has no version", file.display()))
    };
    let directory = project().join("migrations").read_dir();
    let entries = directory.expect("a directory of migrations");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    files.sort_by_key(version);
    files
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

async fn connect(config: &Config) -> Client {
    let connected = config.connect(NoTls).await;
    let (client, connection) = connected.expect("the server takes connections");
    // It ends with the client.
    tokio::spawn(connection);
    client
}

fn server() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let url = std::env::var(SERVER_URL).unwrap_or_else(|_| {
            panic!("{SERVER_URL} isn't set: run `make test`, or put `local/postgres.py run --` before the command")
        });
        url.parse().expect("a Postgres URL")
    })
}

/// A superuser's connection to this database, or to the server's own.
pub async fn administrator(database: Option<&str>) -> Client {
    let mut config = server().clone();
    if let Some(database) = database {
        config.dbname(database);
    }
    connect(&config).await
}

pub fn server_port() -> u16 {
    server().get_ports().first().copied().unwrap_or(5432)
}

/// One database for each run, so that a server may serve several.
pub fn shared_name() -> String {
    format!("onemail_{}", std::process::id())
}

fn shared_database() -> Config {
    let mut config = server().clone();
    config.dbname(shared_name());
    config
}
