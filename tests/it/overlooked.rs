//! What a claim can't see in one glance, in either mode, and must not overlook.

use crate::support::database::Database;
use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::proxy::{Proxy, Then};
use crate::support::ses::Ses;
use crate::support::sqs::Sqs;
use crate::support::world::World;
use crate::support::{database, environment::Environment, lambda::Sandbox};

/// A send whose worker is long gone, and whose lease and wait are over.
const OVERDUE: &str = "\
    INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256, attempt, lease_until) \
    VALUES ('overdue', 'application.status_changed', 'sending', 'worker', '', 1, now() - interval '1 hour')";

/// A worker in transaction mode had taken the row over, sent, and learnt neither SES's answer nor its commit's. Its
/// transaction was rolled back, so the row is as it was; the mark could be written on another connection.
#[tokio::test]
async fn a_mark_beside_a_row_that_could_be_taken_over_is_waited_for_in_both_modes() {
    for mode in ["transaction", "lease"] {
        let world = World::start_with(|environment| environment.with("CLAIM_MODE", mode)).await;
        world.database.execute(OVERDUE).await;
        let mark =
            "INSERT INTO sends_in_doubt VALUES ('overdue', 'm-1', now() + interval '300 seconds')";
        world.database.execute(mark).await;

        let record = Record::new("m-2", &interview("overdue"));
        let answer = world.sandbox.invoke(batch([record])).await;

        answer.assert_failed(&["m-2"]);
        world.ses.assert_requests(0);
        let line = world.sandbox.logs.outcome_of_message("m-2").await;
        assert_eq!(line.field("reason"), "in_doubt", "{mode}");
        world
            .database
            .assert_claims(&[("overdue", "sending")])
            .await;
    }
}

/// The claim is committed when SES's word of an earlier email arrives.
async fn told_between_the_claim_and_the_send(job_board: &str) {
    let database = Database::create().await;
    let proxy = Proxy::start(database::server_port()).await;
    let (ses, sqs) = (Ses::start().await, Sqs::start().await);
    let environment = Environment::notify(&database.url_at(proxy.port()), &ses)
        .with("AWS_ENDPOINT_URL_SQS", &sqs.url())
        .with("CLAIM_MODE", "lease");
    let sandbox = Sandbox::start(&environment).await;
    database.execute(OVERDUE).await;
    database.execute(job_board).await;
    let gate = Gate::closed();
    let look_up = proxy.at("AS ours", Then::Hold(gate.clone()));

    let running = sandbox.begin(batch([Record::new("m-1", &interview("overdue"))]));
    look_up.happened().await;
    let told = "UPDATE processed_events SET outcome = 'sent', ses_message_id = 'ses-1', settled_by = 'ses' \
                 WHERE event_id = 'overdue' AND outcome = 'sending'";
    database.execute(told).await;
    gate.open();

    running.answer().await.assert_none_failed();
    ses.assert_requests(0);
    let line = sandbox.logs.outcome_of_message("m-1").await;
    assert_eq!(line.outcome(), "duplicate");
    let claim = database.claim("overdue").await.expect("a claim");
    assert_eq!(claim.ses_message_id.as_deref(), Some("ses-1"));
}

#[tokio::test]
async fn what_ses_tells_between_the_claim_and_the_send_stops_the_send() {
    told_between_the_claim_and_the_send("").await;
}

/// Its email has left: that its data would not do for another one is nothing to be told of.
#[tokio::test]
async fn what_ses_tells_between_the_claim_and_the_send_counts_though_the_query_fails() {
    let broken = "ALTER TABLE jobs_application RENAME TO raw_application; \
                  CREATE VIEW jobs_application AS SELECT * FROM raw_application WHERE 1 / (id - id) > 0";
    told_between_the_claim_and_the_send(broken).await;
}
