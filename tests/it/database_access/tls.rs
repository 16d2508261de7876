//! What each `sslmode` takes and refuses, on a real server that shows each kind of certificate.

use serde_json::json;
use tokio_postgres::Client;

use crate::support::by_hand::{self, Run};
use crate::support::certificate::{Authority, Certificate, Dates, Folder, self_signed};
use crate::support::environment::Environment;
use crate::support::secrets_manager::{ARN, SecretsManager};
use crate::support::tls_server::TlsServer;

/// The name by which the server is asked for; it is found at 127.0.0.1.
const HOST: &str = "db.example.test";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Encrypted,
    Plain,
    /// With these words in the reason.
    Refused(&'static str),
}

const E: Way = Way::Encrypted;
const P: Way = Way::Plain;
const NO_TLS: Way = Way::Refused("server does not support TLS");
const NAME: Way = Way::Refused("not valid for name");
const ISSUER: Way = Way::Refused("UnknownIssuer");
const EXPIRED: Way = Way::Refused("expired");
const NOT_YET: Way = Way::Refused("not valid yet");

/// The columns; `ROOT` is the file with the root that the server's row names.
const MODES: [&str; 10] = [
    "sslmode=disable",
    "sslmode=prefer",
    "sslmode=prefer&sslrootcert=ROOT",
    "sslmode=require",
    "sslmode=require&sslrootcert=ROOT",
    "sslmode=verify-ca&sslrootcert=ROOT",
    "sslmode=verify-full&sslrootcert=ROOT",
    "sslmode=verify-full",
    "sslrootcert=system",
    "sslmode=verify-full&sslrootcert=rds",
];

struct Row {
    name: &'static str,
    /// `None`: the server speaks no TLS.
    certificate: Option<Certificate>,
    root: String,
    ways: [Way; MODES.len()],
}

/// The last three columns trust roots that never signed a certificate of ours.
#[rustfmt::skip]
fn table() -> Vec<Row> {
    let ours = Authority::new("our root");
    let theirs = Authority::new("another root");
    let certified = |name, certificate, ways| Row {
        name,
        certificate: Some(certificate),
        root: ours.pem.clone(),
        ways,
    };
    let its_own_root = |name, certificate: Certificate, ways| Row {
        name,
        root: certificate.pem.clone(),
        certificate: Some(certificate),
        ways,
    };
    vec![
        //                                               disable, prefer, +root, require, +root, verify-ca, verify-full, unset, system, rds
        Row { name: "no TLS", certificate: None, root: ours.pem.clone(),
                                                    ways: [P, P, P, NO_TLS, NO_TLS, NO_TLS, NO_TLS, NO_TLS, NO_TLS, NO_TLS] },
        certified("right", ours.certify(HOST, Dates::Now),      [P, E, E, E, E, E, E, ISSUER, ISSUER, ISSUER]),
        certified("another name", ours.certify("db2.example.test", Dates::Now),
                                                                [P, E, E, E, E, E, NAME, ISSUER, ISSUER, ISSUER]),
        certified("another root", theirs.certify(HOST, Dates::Now),
                                                                [P, E, E, E, ISSUER, ISSUER, ISSUER, ISSUER, ISSUER, ISSUER]),
        certified("expired", ours.certify(HOST, Dates::Past),   [P, E, E, E, EXPIRED, EXPIRED, EXPIRED, EXPIRED, EXPIRED, EXPIRED]),
        certified("not yet valid", ours.certify(HOST, Dates::Future),
                                                                [P, E, E, E, NOT_YET, NOT_YET, NOT_YET, NOT_YET, NOT_YET, NOT_YET]),
        its_own_root("self-signed", self_signed(HOST, Dates::Now),
                                                                [P, E, E, E, E, E, E, SELF, SELF, SELF]),
        its_own_root("self-signed, another name", self_signed("db2.example.test", Dates::Now),
                                                                [P, E, E, E, E, E, NAME, SELF, SELF, SELF]),
        its_own_root("self-signed, expired", self_signed(HOST, Dates::Past),
                                                                [P, E, E, E, EXPIRED, EXPIRED, EXPIRED, EXPIRED, EXPIRED, EXPIRED]),
        its_own_root("self-signed, not yet valid", self_signed(HOST, Dates::Future),
                                                                [P, E, E, E, NOT_YET, NOT_YET, NOT_YET, NOT_YET, NOT_YET, NOT_YET]),
    ]
}

/// A certificate of an authority, shown by a server, that is not listed as a root.
const SELF: Way = Way::Refused("CaUsedAsEndEntity");

#[tokio::test]
async fn each_sslmode_takes_the_certificates_that_libpq_would_take_and_no_others() {
    let mut server = TlsServer::start().await;
    let folder = Folder::new();
    let mut wrong = Vec::new();
    for row in table() {
        server.show(row.certificate.as_ref()).await;
        let administrator = server.administrator().await;
        note_how_migrate_connects(&administrator).await;
        let root = folder.write("root.pem", &row.root);
        for (mode, expected) in MODES.into_iter().zip(row.ways) {
            let parameters = mode.replace("ROOT", &root.replace('/', "%2F"));
            let found = connect(&server, &administrator, &parameters).await;
            let fits = match (&expected, &found) {
                (Way::Refused(reason), Err(run)) => run.stderr.contains(reason),
                (expected, Ok(found)) => expected == found,
                _ => false,
            };
            if !fits {
                wrong.push(format!("{}, {mode}: {found:?}, not {expected:?}", row.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.stop().await;
}

#[tokio::test]
async fn the_environment_says_what_the_url_leaves_open() {
    let mut server = TlsServer::start().await;
    let folder = Folder::new();
    let ours = Authority::new("our root");
    server.show(Some(&ours.certify(HOST, Dates::Now))).await;
    let root = folder.write("root.pem", &ours.pem);
    let missing = folder.path().join("missing.pem");
    let bare = Environment::migrate(&url(&server, ""));

    for (mode, root, connects) in [
        ("verify-full", root.as_str(), true),
        ("verify-full", "rds", false),
        ("verify-full", missing.to_str().expect("UTF-8"), false),
    ] {
        let environment = bare
            .clone()
            .with("PGSSLMODE", mode)
            .with("PGSSLROOTCERT", root);
        let run = by_hand::run(&environment, &["migrate", "-"], "{}").await;
        assert_eq!(run.success, connects, "{mode} {root}: {run:?}");
        // What the URL says goes before.
        let environment = environment.with("DATABASE_URL", &url(&server, "sslmode=disable"));
        let run = by_hand::run(&environment, &["migrate", "-"], "{}").await;
        assert!(run.success, "{run:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_password_of_a_secret_goes_to_a_server_that_has_proven_its_name_alone() {
    const ADDRESS: &str = "127.0.0.1";
    let mut server = TlsServer::start().await;
    let folder = Folder::new();
    let ours = Authority::new("our root");
    let create = "CREATE ROLE asked_for_password; CREATE ROLE worker SUPERUSER LOGIN PASSWORD 'p@ss'; \
                  GRANT asked_for_password TO worker";
    let created = server.administrator().await.batch_execute(create).await;
    created.expect("the server is new");
    let secrets = SecretsManager::start(&json!({
        "username": "worker",
        "password": "p@ss",
        "host": ADDRESS,
        "port": server.port(),
        "dbname": "postgres",
        "sslmode": "verify-full",
        "sslrootcert": folder.write("root.pem", &ours.pem),
    }))
    .await;
    let environment = Environment::migrate("")
        .with("DATABASE_SECRET_ARN", ARN)
        .with("AWS_ENDPOINT_URL_SECRETS_MANAGER", &secrets.url());

    for (certified, refused) in [
        (Some(ADDRESS), None),
        (Some("127.0.0.2"), Some("not valid for name")),
        (None, Some("server does not support TLS")),
    ] {
        let certificate = certified.map(|name| ours.certify(name, Dates::Now));
        server.show(certificate.as_ref()).await;
        let run = by_hand::run(&environment, &["migrate", "-"], "{}").await;
        assert_eq!(run.success, refused.is_none(), "{certified:?}: {run:?}");
        assert!(run.stderr.contains(refused.unwrap_or_default()), "{run:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_root_certificate_that_cannot_be_read_stops_the_process_and_is_named() {
    let folder = Folder::new();
    let no_certificate = folder.write("empty.pem", "nothing here\n");
    for file in [no_certificate.as_str(), "/nowhere/root.pem"] {
        let url = format!(
            "postgres://worker:hunter2@127.0.0.1:9/jobs?sslmode=verify-ca&sslrootcert={file}"
        );
        let run = by_hand::run(&Environment::migrate(&url), &["migrate", "-"], "{}").await;
        assert!(!run.success);
        assert!(run.stderr.contains("PGSSLROOTCERT"), "{}", run.stderr);
        assert!(run.stderr.contains(file), "{}", run.stderr);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
}

fn url(server: &TlsServer, parameters: &str) -> String {
    let port = server.port();
    format!("postgres://postgres:hunter2@{HOST}:{port}/postgres?hostaddr=127.0.0.1&{parameters}")
}

/// Migrates over such a connection, and gives how it was connected, or the run that failed.
async fn connect(server: &TlsServer, administrator: &Client, parameters: &str) -> Result<Way, Run> {
    let environment = Environment::migrate(&url(server, parameters));
    let run = by_hand::run(&environment, &["migrate", "-"], "{}").await;
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    if !run.success {
        return Err(run);
    }
    let taken = "WITH taken AS (DELETE FROM connected RETURNING encrypted) SELECT bool_and(encrypted) FROM taken";
    let row = administrator.query_one(taken, &[]).await;
    let encrypted: Option<bool> = row.expect("the table is there").get(0);
    Ok(match encrypted.expect("migrate has connected") {
        true => Way::Encrypted,
        false => Way::Plain,
    })
}

/// `migrate` looks for its table with `CREATE TABLE IF NOT EXISTS`, which sets this off each time.
async fn note_how_migrate_connects(administrator: &Client) {
    let statements = "DROP EVENT TRIGGER IF EXISTS note_connection; \
        DROP TABLE IF EXISTS connected; \
        CREATE TABLE connected (encrypted boolean); \
        CREATE OR REPLACE FUNCTION note_connection() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
            INSERT INTO public.connected SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid(); END $$; \
        CREATE EVENT TRIGGER note_connection ON ddl_command_start EXECUTE FUNCTION note_connection()";
    administrator
        .batch_execute(statements)
        .await
        .expect("the statements are right");
}
