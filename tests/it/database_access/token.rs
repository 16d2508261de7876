//! The third way: a token of RDS IAM for each connection, which a gatekeeper before Postgres asks for as RDS does.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

use crate::support::by_hand;
use crate::support::certificate::{Authority, Dates, Folder};
use crate::support::database::{Database, server_port, shared_name};
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::gatekeeper::Gatekeeper;
use crate::support::lambda::Sandbox;
use crate::support::ses::{Reply, Ses};
use crate::support::sqs::Sqs;

const HOST: &str = "jobs.abcdefgh.eu-west-1.rds.example.test";
/// As an environment of the tests has them.
const ACCESS_KEY: &str = "AKIDEXAMPLE";
const SECRET_KEY: &str = "wJalrXUtnFEMI-EXAMPLE";
const SESSION_TOKEN: &str = "session-token-EXAMPLE";

struct Stage {
    database: Database,
    gatekeeper: Gatekeeper,
    ses: Ses,
    environment: Environment,
    _roots: Folder,
}

impl Stage {
    async fn start(certified: &str) -> Self {
        let database = Database::create().await;
        let authority = Authority::new("our root");
        let certificate = authority.certify(certified, Dates::Now);
        let gatekeeper = Gatekeeper::start(server_port(), &certificate).await;
        let roots = Folder::new();
        let root = roots.write("root.pem", &authority.pem);
        let ses = Ses::start().await;
        let url = url(database.name(), gatekeeper.port());
        let environment = Environment::notify(&url, &ses)
            .with("DATABASE_IAM_AUTH", "true")
            .with("PGSSLMODE", "verify-full")
            .with("PGSSLROOTCERT", &root)
            .with("AWS_ENDPOINT_URL_SQS", &Sqs::start().await.url());
        Self {
            database,
            gatekeeper,
            ses,
            environment,
            _roots: roots,
        }
    }

    fn tokens(&self) -> Vec<Token> {
        let tokens = self.gatekeeper.passwords();
        tokens.iter().map(|token| Token::read(token)).collect()
    }
}

fn url(user: &str, port: u16) -> String {
    let database = shared_name();
    format!("postgres://{user}@{HOST}:{port}/{database}?hostaddr=127.0.0.1")
}

/// A token, taken apart.
#[derive(Debug)]
struct Token {
    address: String,
    query: String,
    values: BTreeMap<String, String>,
}

impl Token {
    fn read(text: &str) -> Self {
        let (address, query) = text.split_once("/?").expect("an address and a query");
        let values = query.split('&').map(|pair| {
            let (name, value) = pair.split_once('=').expect("a name and a value");
            let value = percent_decode_str(value).decode_utf8().expect("UTF-8");
            (name.to_owned(), value.into_owned())
        });
        Self {
            address: address.to_owned(),
            query: query.to_owned(),
            values: values.collect(),
        }
    }

    fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>, once more.
    fn expected_signature(&self) -> String {
        let time = self.value("X-Amz-Date");
        let day = &time[..8];
        let scope = format!("{day}/eu-west-1/rds-db/aws4_request");
        let mut query: Vec<&str> = self.query.split('&').collect();
        query.retain(|pair| !pair.starts_with("X-Amz-Signature="));
        query.sort_unstable();
        let request = format!(
            "GET\n/\n{}\nhost:{}\n\nhost\n{}",
            query.join("&"),
            self.address,
            hex(&Sha256::digest(b""))
        );
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
            hex(&Sha256::digest(request))
        );
        let mut key = format!("AWS4{SECRET_KEY}").into_bytes();
        for part in [day, "eu-west-1", "rds-db", "aws4_request"] {
            key = hmac(&key, part.as_bytes());
        }
        hex(&hmac(&key, to_sign.as_bytes()))
    }

    fn assert_is_for(&self, user: &str, port: u16) {
        assert_eq!(self.address, format!("{HOST}:{port}"));
        let day = &self.value("X-Amz-Date")[..8];
        let credential = format!("{ACCESS_KEY}/{day}/eu-west-1/rds-db/aws4_request");
        for (name, expected) in [
            ("Action", "connect"),
            ("DBUser", user),
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Expires", "900"),
            ("X-Amz-Security-Token", SESSION_TOKEN),
            ("X-Amz-SignedHeaders", "host"),
            ("X-Amz-Signature", &self.expected_signature()),
        ] {
            assert_eq!(self.value(name), expected, "{name}");
        }
        assert_eq!(self.values.len(), 9, "{self:?}");
    }
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    assert!(key.len() <= BLOCK);
    let pad = |with: u8| -> Vec<u8> {
        let key = key.iter().copied().chain(std::iter::repeat(0));
        key.take(BLOCK).map(|byte| byte ^ with).collect()
    };
    let inner = Sha256::digest([pad(0x36), message.to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn the_password_of_a_connection_is_a_token_for_this_host_port_and_user() {
    let stage = Stage::start(HOST).await;
    let sandbox = Sandbox::start(&stage.environment).await;
    assert_eq!(stage.gatekeeper.passwords().len(), 0, "connected at start");

    sandbox
        .invoke(batch([Record::new("m-1", &interview("signed"))]))
        .await
        .assert_none_failed();

    let tokens = stage.tokens();
    assert_eq!(tokens.len(), 1);
    tokens[0].assert_is_for(stage.database.name(), stage.gatekeeper.port());
    assert!(!sandbox.logs.text().contains("X-Amz-Signature"));
}

#[tokio::test]
async fn a_user_with_reserved_characters_is_encoded_in_the_token_and_not_at_postgres() {
    let stage = Stage::start(HOST).await;
    let user = format!("{}@é&#%", stage.database.name());
    let schema = stage.database.name();
    let create = format!(
        "CREATE ROLE \"{user}\" SUPERUSER LOGIN; ALTER ROLE \"{user}\" SET search_path = {schema}"
    );
    stage.database.execute(&create).await;
    let in_url: String = user.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let environment = stage
        .environment
        .clone()
        .with("DATABASE_URL", &url(&in_url, stage.gatekeeper.port()));

    Sandbox::start(&environment)
        .await
        .invoke(batch([Record::new("m-1", &interview("encoded"))]))
        .await
        .assert_none_failed();

    let tokens = stage.tokens();
    assert_eq!(tokens.len(), 1);
    tokens[0].assert_is_for(&user, stage.gatekeeper.port());
}

#[tokio::test]
async fn each_new_connection_has_a_token_of_its_own() {
    let stage = Stage::start(HOST).await;
    // For three connections at once.
    let environment = stage.environment.clone().with("CLAIM_MODE", "transaction");
    let sandbox = Sandbox::start(&environment).await;
    let gate = Gate::closed();
    stage.ses.reply_always(Reply::accept().after(&gate));
    let records = ["a", "b", "c"].map(|id| Record::new(&format!("m-{id}"), &interview(id)));
    let running = sandbox.begin(batch(records));
    stage.ses.received(3).await;
    gate.open();
    running.answer().await.assert_none_failed();
    assert_eq!(stage.tokens().len(), 3);

    // A token's time is in whole seconds.
    stage.database.end_other_sessions().await;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let part = since_epoch.expect("it is later than 1970").subsec_millis();
    tokio::time::sleep(Duration::from_millis(1_001 - u64::from(part))).await;
    sandbox
        .invoke(batch([Record::new("m-d", &interview("d"))]))
        .await
        .assert_none_failed();

    let tokens = stage.tokens();
    assert_eq!(tokens.len(), 4);
    tokens[3].assert_is_for(stage.database.name(), stage.gatekeeper.port());
    assert!(tokens[3].value("X-Amz-Date") > tokens[2].value("X-Amz-Date"));
}

#[tokio::test]
async fn a_token_that_is_refused_costs_another_and_no_record() {
    let stage = Stage::start(HOST).await;
    let sandbox = Sandbox::start(&stage.environment).await;
    stage.gatekeeper.refuse(2);

    sandbox
        .invoke(batch([Record::new("m-1", &interview("third"))]))
        .await
        .assert_none_failed();

    assert_eq!(stage.tokens().len(), 3);
    stage.gatekeeper.refuse(usize::MAX);
    stage.database.end_other_sessions().await;
    sandbox
        .invoke(batch([Record::new("m-2", &interview("never"))]))
        .await
        .assert_failed(&["m-2"]);
    let line = sandbox.logs.outcome_of("never").await;
    assert_eq!(line.field("reason"), "database_setup");
    assert_eq!(line.field("code"), "28P01");
    assert!(!sandbox.logs.text().contains("X-Amz-Signature"));
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_gets_no_token() {
    let stage = Stage::start("elsewhere.example.test").await;
    let sandbox = Sandbox::start(&stage.environment).await;

    sandbox
        .invoke(batch([Record::new("m-1", &interview("kept"))]))
        .await
        .assert_failed(&["m-1"]);

    let line = sandbox.logs.outcome_of("kept").await;
    assert_eq!(line.field("reason"), "database_setup");
    assert!(line.text.contains("not valid for name"), "{}", line.text);
    assert_eq!(stage.gatekeeper.passwords(), [""; 0]);
}

#[tokio::test]
async fn a_token_that_could_leave_unencrypted_stops_the_process_at_start() {
    let stage = Stage::start(HOST).await;
    let weak = ["disable", "prefer", ""];
    for environment in weak.map(|mode| stage.environment.clone().with("PGSSLMODE", mode)) {
        let environment = environment.without("PGSSLROOTCERT");
        let sandbox = Sandbox::spawn("notify", &environment).await;

        assert!(!sandbox.exited().await.success());

        let lines = sandbox.logs.to_the_end().await;
        assert_eq!(lines.len(), 1, "{}", sandbox.logs.text());
        for word in ["DATABASE_IAM_AUTH", "sslmode", "verify-full"] {
            assert!(lines[0].text.contains(word), "{}", lines[0].text);
        }
    }
    assert_eq!(stage.gatekeeper.passwords(), [""; 0]);
}

#[tokio::test]
async fn migrate_connects_with_tokens_too() {
    let stage = Stage::start(HOST).await;

    let run = by_hand::run(&stage.environment, &["migrate", "-"], "{}").await;

    assert!(run.success, "{run:?}");
    // One connection keeps the lock.
    assert_eq!(stage.tokens().len(), 2);
}

#[tokio::test]
async fn a_process_without_credentials_says_so() {
    let stage = Stage::start(HOST).await;
    let environment = stage
        .environment
        .clone()
        .without("AWS_ACCESS_KEY_ID")
        .without("AWS_SECRET_ACCESS_KEY")
        .without("AWS_SESSION_TOKEN")
        .with("AWS_EC2_METADATA_DISABLED", "true");

    let run = by_hand::run(&environment, &["migrate", "-"], "{}").await;

    assert!(!run.success);
    assert!(run.stderr.contains("DATABASE_IAM_AUTH"), "{}", run.stderr);
    let said = run.stderr.matches("no AWS credentials").count();
    assert_eq!(said, 1, "{}", run.stderr);
}
