//! An SES that can't be reached has not sent; one that was reached and is silent may have.

use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::support::environment::NOWHERE;
use crate::support::event::{Record, batch, interview};
use crate::support::lambda::Sandbox;
use crate::support::patience::within_reason;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::Ending;

#[tokio::test]
async fn a_silent_ses_leaves_the_outcome_open() {
    let world = World::start().await;
    world.ses.reply_to_event("silent", Reply::silence());

    let event = batch([Record::new("m-1", &interview("silent"))]);
    world
        .sandbox
        .invoke_within(event, Duration::from_secs(8))
        .await
        .assert_failed(&["m-1"]);

    let line = world.sandbox.logs.outcome_of("silent").await;
    assert_eq!(Ending::of(&line), Ending::unknown("Timeout"));
    world.ses.assert_requests(1);
    world.assert_claims_and_doubts(&[], &["silent"]).await;
}

/// A worker whose way to SES is this.
async fn worker_whose_ses_is_at(endpoint: &str) -> (World, Sandbox) {
    let world = World::start().await;
    let environment = world
        .environment
        .clone()
        .with("AWS_ENDPOINT_URL_SESV2", endpoint);
    let sandbox = Sandbox::start(&environment).await;
    (world, sandbox)
}

async fn assert_never_connected(endpoint: &str) {
    let (world, sandbox) = worker_whose_ses_is_at(endpoint).await;

    let event = batch([Record::new("m-1", &interview("unsent"))]);
    // Where nobody answers, there is time for two tries and most of another.
    sandbox
        .invoke_within(event, Duration::from_secs(8))
        .await
        .assert_failed(&["m-1"]);

    let line = sandbox.logs.outcome_of("unsent").await;
    assert_eq!(
        Ending::of(&line),
        Ending::try_again("ses", "NotConnected"),
        "{}",
        line.text
    );
    world.database.assert_claims(&[]).await;
    let doubts = world
        .database
        .query("SELECT FROM sends_in_doubt", &[])
        .await;
    assert!(doubts.is_empty(), "an email that never left is in doubt");
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    assert_never_connected(NOWHERE).await;
}

#[tokio::test]
async fn a_name_that_is_not_resolved_is_not_sent() {
    // RFC 6761: no name under it is ever resolved.
    assert_never_connected("http://email.ses.invalid").await;
}

#[tokio::test]
async fn a_tls_handshake_that_fails_is_not_sent() {
    let world = World::start().await;
    // It speaks plain HTTP on that port.
    assert_never_connected(&world.ses.url().replace("http://", "https://")).await;
    world.ses.assert_requests(0);
}

#[tokio::test]
async fn a_tls_handshake_that_is_never_answered_is_not_sent() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = silent.local_addr().expect("it is bound").port();
    assert_never_connected(&format!("https://127.0.0.1:{port}")).await;
}

#[tokio::test]
async fn a_connection_that_is_never_answered_is_not_sent() {
    let socket = TcpSocket::new_v4().expect("a socket");
    let anywhere = "127.0.0.1:0".parse().expect("an address");
    socket.bind(anywhere).expect("a free port");
    // Nobody accepts, and the queue is full: the next one's packets are dropped.
    let full = socket.listen(1).expect("it listens");
    let address = full.local_addr().expect("it is bound");
    let _waiting = [
        TcpStream::connect(address).await,
        TcpStream::connect(address).await,
    ];

    assert_never_connected(&format!("http://{address}")).await;
}

#[tokio::test]
async fn while_ses_cannot_be_reached_it_is_tried_again_within_the_invocation() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (world, sandbox) = worker_whose_ses_is_at(&format!("https://{address}")).await;

    let running = sandbox.begin(batch([Record::new("m-1", &interview("unsent"))]));
    // Each is accepted and closed before anything of TLS was said.
    for _ in 0..3 {
        let accepted = within_reason("another try", listener.accept()).await;
        accepted.expect("it listens");
    }

    running.answer().await.assert_failed(&["m-1"]);
    let line = sandbox.logs.outcome_of("unsent").await;
    assert_eq!(
        Ending::of(&line),
        Ending::try_again("ses", "NotConnected"),
        "{}",
        line.text
    );
    world.database.assert_claims(&[]).await;
}

#[tokio::test]
async fn what_keeps_the_request_from_being_made_is_ours_to_fix_and_not_in_doubt() {
    let ours = [
        ("AWS_REGION", "", "RequestNotBuilt"),
        ("AWS_REGION", "no region", "RequestNotBuilt"),
        (
            "AWS_ENDPOINT_URL_SESV2",
            "localhost:4566",
            "RequestNotBuilt",
        ),
        ("AWS_ENDPOINT_URL_SESV2", "http://a b/", "RequestNotBuilt"),
        ("AWS_ENDPOINT_URL_SESV2", "/", "RequestNotBuilt"),
        ("AWS_SESSION_TOKEN", "two\nlines", "RequestNotBuilt"),
        // The SDK panics.
        ("AWS_ENDPOINT_URL_SESV2", "", "panic"),
    ];
    let world = World::start().await;
    for (variable, value, code) in ours {
        let environment = world.environment.clone().with(variable, value);
        let sandbox = Sandbox::start(&environment).await;

        let event = batch([Record::new("m-1", &interview("not-made"))]);
        sandbox.invoke(event).await.assert_failed(&["m-1"]);

        let line = sandbox.logs.outcome_of("not-made").await;
        assert_eq!(
            Ending::of(&line),
            Ending::ours("ses_setup", code),
            "{variable}={value}: {}",
            line.text
        );
        let logged = sandbox.logs.text();
        for private in ["sam@example.com", "Sam", "Backend Engineer"] {
            assert!(!logged.contains(private), "{variable}={value}: {logged}");
        }
        world.assert_claims_and_doubts(&[], &[]).await;
    }
    world.ses.assert_requests(0);
}
