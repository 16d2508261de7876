//! A Postgres that turns us away, or a connection that breaks before anything was sent.

use crate::support::database::server_port;
use crate::support::door::Door;
use crate::support::environment::Environment;
use crate::support::event::{Record, batch, interview};
use crate::support::lambda::Sandbox;
use crate::support::proxy::Then;
use crate::support::world::World;

use super::Ending;

/// A worker that comes to Postgres through a door.
async fn worker_behind_a_door() -> (World, Sandbox, Door) {
    let world = World::start().await;
    let door = Door::start(server_port()).await;
    let environment = Environment::notify(&world.database.url_at(door.port()), &world.ses)
        .with("AWS_ENDPOINT_URL_SQS", &world.sqs.url());
    let sandbox = Sandbox::start(&environment).await;
    (world, sandbox, door)
}

#[tokio::test]
async fn a_connection_that_postgres_turns_away_is_tried_twice_more() {
    for code in ["28P01", "28000", "53300", "57P03", "08006"] {
        let (world, sandbox, door) = worker_behind_a_door().await;

        door.turn_away(2, code);
        sandbox
            .invoke(batch([Record::new("m-1", &interview("let-in"))]))
            .await
            .assert_none_failed();

        world.ses.assert_emails(1);
        assert_eq!(door.turned_away(), 2, "{code}");
    }
}

#[tokio::test]
async fn a_connection_that_postgres_keeps_turning_away_is_reported() {
    for code in ["28P01", "28000", "53300", "57P03"] {
        let (world, sandbox, door) = worker_behind_a_door().await;

        door.turn_away(usize::MAX, code);
        sandbox
            .invoke(batch([Record::new("m-1", &interview("shut-out"))]))
            .await
            .assert_failed(&["m-1"]);

        let line = sandbox.logs.outcome_of("shut-out").await;
        assert_eq!(Ending::of(&line), Ending::not_cured(code));
        assert_eq!(door.turned_away(), 3, "{code}");
        world.ses.assert_requests(0);
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_ours_to_fix() {
    let (_world, sandbox, door) = worker_behind_a_door().await;

    door.turn_away(usize::MAX, "3D000");
    sandbox
        .invoke(batch([Record::new("m-1", &interview("shut-out"))]))
        .await
        .assert_failed(&["m-1"]);

    let line = sandbox.logs.outcome_of("shut-out").await;
    assert_eq!(Ending::of(&line), Ending::ours("database_setup", "3D000"));
    assert_eq!(door.turned_away(), 1);
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_send_costs_another_try() {
    for statement in ["BEGIN", "INSERT INTO processed_events", "jobs_application"] {
        for then in [Then::Cut, Then::CutReplies] {
            let (world, proxy) = World::start_with_proxy().await;
            let what = format!("{then:?} at {statement}");
            let broken = proxy.at(statement, then);

            let answer = world
                .sandbox
                .invoke(batch([Record::new("m-1", &interview("kept"))]))
                .await;

            broken.happened().await;
            assert_eq!(answer.failed, [""; 0], "{what}");
            world.ses.assert_emails(1);
        }
    }
}
