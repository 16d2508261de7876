//! What lease mode leaves behind, and what it says.

use crate::support::event::{Record, batch, interview, status_changed};
use crate::support::gate::Gate;
use crate::support::mode::Mode;
use crate::support::proxy::Message;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{log_of, message, named, start};

/// A conflict is then an error, and the claim is made again on another connection.
#[tokio::test]
async fn a_role_whose_transactions_are_serializable_by_default_changes_nothing() {
    for level in ["serializable", "repeatable read"] {
        let world = start().await;
        let strict =
            format!("ALTER ROLE CURRENT_USER SET default_transaction_isolation = '{level}'");
        world.database.execute(&strict).await;
        let workers = [world.another_sandbox().await, world.another_sandbox().await];

        for round in 0..10 {
            let names = [0, 1, 2, 3].map(|key| format!("r{round}-{key}"));
            let records = |who: &str| {
                let message = |name: &String| message(&format!("{who}-{name}"), name);
                batch(names.each_ref().map(message))
            };
            for running in [
                workers[0].begin(records("a")),
                workers[1].begin(records("b")),
            ] {
                running.answer().await;
            }
        }
        // What one of them reported, since the other had it, comes back.
        let names = (0..10).flat_map(|round| (0..4).map(move |key| format!("r{round}-{key}")));
        workers[0]
            .invoke(batch(names.map(|name| named(&name))))
            .await
            .assert_none_failed();

        world.ses.assert_requests(40);
        let claims = world.database.claims().await;
        assert_eq!(claims.len(), 40);
        assert!(claims.iter().all(|claim| claim.outcome == "sent"));
    }
}

/// What the claim sets for itself would outlive it on a connection that a pooler hands to others.
#[tokio::test]
async fn the_lock_timeout_of_a_claim_ends_with_its_statement() {
    let world = start().await;
    let seen = "CREATE TABLE seen (at text, lock_timeout text);
                CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    INSERT INTO seen VALUES (TG_OP, current_setting('lock_timeout'));
                    RETURN NEW;
                END $$;
                CREATE TRIGGER see BEFORE INSERT OR UPDATE ON processed_events
                    FOR EACH ROW EXECUTE FUNCTION see()";
    world.database.execute(seen).await;

    world
        .sandbox
        .invoke(batch([named("sent")]))
        .await
        .assert_none_failed();

    let seen = world
        .database
        .query("SELECT at, lock_timeout FROM seen", &[])
        .await;
    let seen: Vec<(&str, &str)> = seen.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(seen, [("INSERT", "1s"), ("UPDATE", "0")]);
}

/// What RDS Proxy pins a connection for, and what PgBouncer in transaction mode gets wrong.
#[tokio::test]
async fn no_statement_has_a_name_and_none_sets_anything_for_the_session() {
    let (world, proxy) = World::start_with_proxy_in(Mode::Lease).await;
    world
        .ses
        .reply_to_event("refused", Reply::refuse(400, "MessageRejected", "No."));
    world
        .ses
        .reply_to_event("unclear", Reply::accept_without_reply());
    let gone = status_changed("gone", 9999, "reviewing", "offer");
    let records = ["sent", "refused", "unclear"].map(named);
    world
        .sandbox
        .invoke(batch(
            records.into_iter().chain([Record::new("gone", &gone)]),
        ))
        .await
        .assert_failed(&["refused", "unclear"]);

    let messages = proxy.messages();
    let named: Vec<&str> = messages
        .iter()
        .filter_map(Message::statement_name)
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(named, [""; 0], "named statements");
    let statements = messages.iter().filter_map(Message::sql);
    let sets: Vec<&str> = statements
        .flat_map(|sql| sql.split(';'))
        .map(str::trim)
        .filter(|sql| sql.to_lowercase().starts_with("set ") && !sql.starts_with("SET LOCAL "))
        .collect();
    assert_eq!(sets, [""; 0]);
}

/// Each of these makes lines that transaction mode never writes.
#[tokio::test]
async fn no_line_has_an_address_a_name_or_the_hash_of_a_payload() {
    let world = start().await;
    let other = world.another_sandbox().await;
    let gate = Gate::closed();
    world
        .ses
        .reply_to_event("taken", Reply::accept().after(&gate));
    world
        .ses
        .reply_to_event("told", Reply::accept().after(&gate));

    let running = world.sandbox.begin(batch(["taken", "told"].map(named)));
    world.ses.received(2).await;
    other
        .invoke(batch([Record::new("m-2", &interview("taken"))]))
        .await
        .assert_failed(&["m-2"]);
    let meanwhile = "UPDATE processed_events SET attempt = attempt # 1 WHERE event_id = 'taken'; \
                     UPDATE processed_events SET outcome = 'sent', ses_message_id = 'x', settled_by = 'ses' \
                      WHERE event_id = 'told'";
    world.database.execute(meanwhile).await;
    gate.open();
    running.answer().await.assert_none_failed();

    let claims = world.database.claims().await;
    let hashes = claims.iter().map(|claim| {
        let hash = claim.payload_sha256.iter();
        hash.map(|byte| format!("{byte:02x}")).collect::<String>()
    });
    let hashes: Vec<String> = hashes.collect();
    for sandbox in [&world.sandbox, &other] {
        for line in log_of(sandbox).await {
            assert!(
                !line.text.contains('@') && !line.text.contains("Sam"),
                "{}",
                line.text
            );
            assert!(!line.text.contains("Acme"), "{}", line.text);
            let hashed = hashes.iter().any(|hash| line.text.contains(hash.as_str()));
            assert!(!hashed, "{}", line.text);
        }
    }
}
