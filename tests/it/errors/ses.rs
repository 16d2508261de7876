//! What SES answers, row by row of the table in `src/send/verdict.rs`.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::support::event::{Record, batch, interview};
use crate::support::gate::Gate;
use crate::support::ses::Reply;
use crate::support::world::World;

use super::{Ending, counts};

/// Whatever SES is asked for this event, it says this.
fn reply_ever(world: &World, event_id: &str, reply: &Reply) {
    for _ in 0..5 {
        world.ses.reply_to_event(event_id, reply.clone());
    }
}

fn requests_for(world: &World, event_id: &str) -> usize {
    let requests = world.ses.requests();
    requests
        .iter()
        .filter(|request| request.event_id() == event_id)
        .count()
}

/// Has one batch of events, each of which SES answers with an error of its own, and looks at what became of each:
/// reported, unsettled, and after so many requests.
async fn assert_endings(world: &World, rows: &[(&str, Reply, Ending<'_>)], requests: usize) {
    for (event_id, reply, _) in rows {
        reply_ever(world, event_id, reply);
    }
    let events = rows
        .iter()
        .map(|(event_id, ..)| Record::new(event_id, &interview(event_id)));
    let answer = world.sandbox.invoke(batch(events)).await;

    let event_ids: Vec<&str> = rows.iter().map(|(event_id, ..)| *event_id).collect();
    answer.assert_failed(&event_ids);
    let unknown = rows.iter().filter(|row| row.2.outcome == "unknown");
    let unknown: Vec<&str> = unknown.map(|(event_id, ..)| *event_id).collect();
    world.assert_claims_and_doubts(&[], &unknown).await;
    for (event_id, _, expected) in rows {
        let line = world.sandbox.logs.outcome_of(event_id).await;
        assert_eq!(&Ending::of(&line), expected, "{event_id}: {}", line.text);
        assert_eq!(requests_for(world, event_id), requests, "{event_id}");
    }
}

#[tokio::test]
async fn throttling_is_retried_in_place_and_then_reported() {
    let world = World::start().await;
    let typed = |error_type| Reply::refuse(400, error_type, "Maximum sending rate exceeded.");
    let ending = |code| Ending::try_again("ses", code);
    let rows = [
        (
            "too-many",
            Reply::refuse(
                429,
                "TooManyRequestsException",
                "Maximum sending rate exceeded.",
            ),
            ending("TooManyRequestsException"),
        ),
        (
            "too-many-in-body",
            Reply::refuse_in_body(429, "TooManyRequestsException", "Too many requests."),
            ending("TooManyRequestsException"),
        ),
        (
            "throttling",
            typed("ThrottlingException"),
            ending("ThrottlingException"),
        ),
        ("throttled", typed("Throttling"), ending("Throttling")),
        (
            "limited",
            typed("RequestLimitExceeded"),
            ending("RequestLimitExceeded"),
        ),
        (
            "untyped",
            Reply::accept_and_answer(429, "").not_accepted(),
            ending("Http429"),
        ),
        (
            "untyped-page",
            Reply::accept_and_answer(429, "<html>Slow down</html>").not_accepted(),
            ending("Http429"),
        ),
    ];

    assert_endings(&world, &rows, 3).await;

    assert_eq!(counts(&world).await, json!({ "Released": rows.len() }));
}

#[tokio::test]
async fn throttling_that_passes_within_the_invocation_costs_no_second_delivery() {
    let world = World::start().await;
    let throttled = Reply::refuse(429, "TooManyRequestsException", "Rate exceeded.");
    world.ses.reply_to_event("once", throttled.clone());
    world.ses.reply_to_event("twice", throttled.clone());
    world.ses.reply_to_event("twice", throttled);

    let events = ["once", "twice"].map(|id| Record::new(id, &interview(id)));
    world
        .sandbox
        .invoke(batch(events))
        .await
        .assert_none_failed();

    world.ses.assert_emails(2);
    assert_eq!(requests_for(&world, "once"), 2);
    assert_eq!(requests_for(&world, "twice"), 3);
    world
        .database
        .assert_claims(&[("once", "sent"), ("twice", "sent")])
        .await;
}

/// An answer that then doesn't come in time leaves the outcome open, of an email that was known to be unsent.
#[tokio::test]
async fn a_throttled_send_is_not_repeated_with_less_time_than_a_first_send_must_have() {
    let world = World::start().await;
    let gate = Gate::closed();
    let throttled = Reply::refuse(429, "TooManyRequestsException", "Rate exceeded.");
    world
        .ses
        .reply_to_event("throttled", throttled.after(&gate));
    world.ses.reply_to_event("throttled", Reply::silence());

    let event = batch([Record::new("m-1", &interview("throttled"))]);
    let began = Instant::now();
    let running = world.sandbox.begin_within(event, Duration::from_secs(8));
    world.ses.received(1).await;
    // SES has until 1.5 s before the deadline, and a first send must have 2 s.
    tokio::time::sleep_until(began + Duration::from_millis(4600)).await;
    gate.open();
    running.answer().await.assert_failed(&["m-1"]);

    let line = world.sandbox.logs.outcome_of("throttled").await;
    assert_eq!(
        Ending::of(&line),
        Ending::try_again("ses", "TooManyRequestsException"),
        "{}",
        line.text
    );
}

#[tokio::test]
async fn what_is_ours_to_fix_is_an_error_with_a_metric_and_never_a_retry_in_place() {
    let world = World::start().await;
    let row = |event_id, status, code, message| {
        (
            event_id,
            Reply::refuse(status, code, message),
            Ending::ours("ses_setup", code),
        )
    };
    let rows = [
        row(
            "daily-quota",
            429,
            "TooManyRequestsException",
            "Daily message quota exceeded.",
        ),
        row(
            "daily-quota-throttling",
            400,
            "ThrottlingException",
            "Daily message Quota exceeded.",
        ),
        row(
            "daily-quota-throttled",
            454,
            "Throttling",
            "Daily message quota exceeded.",
        ),
        row(
            "limit",
            400,
            "LimitExceededException",
            "Too many resources.",
        ),
        row(
            "paused",
            400,
            "SendingPausedException",
            "Email sending is disabled for your account.",
        ),
        row(
            "suspended",
            400,
            "AccountSuspendedException",
            "Your account's ability to send has been permanently restricted.",
        ),
        row(
            "mail-from",
            400,
            "MailFromDomainNotVerifiedException",
            "The MAIL FROM domain is not verified.",
        ),
        row(
            "configuration-set",
            404,
            "NotFoundException",
            "Configuration set <onemail> does not exist.",
        ),
        row(
            "sandbox",
            400,
            "MessageRejected",
            "Email address is not verified. The following identities failed the check in region EU-WEST-1: \
             sam@example.com",
        ),
        row(
            "paused-rejected",
            400,
            "MessageRejected",
            "Sending paused for this account. For more information, please check the inbox of the email address \
             associated with your AWS account.",
        ),
        row(
            "sandbox-bad-request",
            400,
            "BadRequestException",
            "Email address is NOT verified.",
        ),
        row(
            "denied",
            403,
            "AccessDeniedException",
            "User is not authorized to perform `ses:SendEmail' on resource.",
        ),
        row(
            "expired",
            403,
            "ExpiredTokenException",
            "The security token included in the request is expired.",
        ),
        row(
            "signature",
            403,
            "InvalidSignatureException",
            "Signature expired.",
        ),
        row("credentials", 403, "UnrecognizedClientException", "No."),
        row("something-new", 400, "SomethingNewException", "No."),
    ];

    assert_endings(&world, &rows, 1).await;

    assert_eq!(counts(&world).await, json!({ "SetupErrors": rows.len() }));
}

#[tokio::test]
async fn an_untyped_refusal_is_ours_to_fix_too() {
    let world = World::start().await;
    let row = |event_id, status, code| {
        (
            event_id,
            Reply::accept_and_answer(status, "").not_accepted(),
            Ending::ours("ses_setup", code),
        )
    };
    let rows = [
        row("no-400", 400, "Http400"),
        row("no-403", 403, "Http403"),
        row("no-404", 404, "Http404"),
    ];

    assert_endings(&world, &rows, 1).await;
}

#[tokio::test]
async fn what_ses_will_never_take_is_refused() {
    let world = World::start().await;
    let refused = |code| Ending::never("message_refused", code);
    let rows = [
        (
            "rejected",
            Reply::refuse(400, "MessageRejected", "Email contains a virus."),
            refused("MessageRejected"),
        ),
        (
            "bad-request",
            Reply::refuse(400, "BadRequestException", "Illegal address"),
            refused("BadRequestException"),
        ),
        (
            "too-large",
            Reply::refuse(413, "RequestEntityTooLarge", "No."),
            refused("RequestEntityTooLarge"),
        ),
        (
            "too-large-untyped",
            Reply::accept_and_answer(413, "<html>Too large</html>").not_accepted(),
            refused("Http413"),
        ),
    ];

    assert_endings(&world, &rows, 1).await;

    assert_eq!(counts(&world).await, json!({ "Refused": rows.len() }));
}

#[tokio::test]
async fn what_leaves_the_outcome_open_is_a_warning_with_a_metric_and_never_a_retry_in_place() {
    let world = World::start().await;
    let truncated = Reply::accept_with_half_a_reply();
    let rows = [
        (
            "500",
            Reply::refuse(500, "InternalServiceErrorException", "No."),
            Ending::unknown("InternalServiceErrorException"),
        ),
        (
            "502",
            Reply::accept_and_answer(502, "<html>Bad Gateway</html>"),
            Ending::unknown("Http502"),
        ),
        (
            "503",
            Reply::refuse(503, "ServiceUnavailable", "No."),
            Ending::unknown("ServiceUnavailable"),
        ),
        (
            "504",
            Reply::accept_and_answer(504, ""),
            Ending::unknown("Http504"),
        ),
        // Throttling that comes as a failure of the server is no promise that nothing was done before it.
        (
            "throttled-503",
            Reply::refuse(503, "ThrottlingException", "Rate exceeded."),
            Ending::unknown("ThrottlingException"),
        ),
        ("truncated", truncated, Ending::unknown("UnreadableAnswer")),
        (
            "empty-object",
            Reply::accept_and_answer(200, "{}"),
            Ending::unknown("NoMessageId"),
        ),
        (
            "empty-id",
            Reply::accept_and_answer(200, r#"{"MessageId":""}"#),
            Ending::unknown("NoMessageId"),
        ),
        (
            "html",
            Reply::accept_and_answer(200, "<html>Welcome</html>"),
            Ending::unknown("Http200"),
        ),
        (
            "reset",
            Reply::accept_without_reply(),
            Ending::unknown("ConnectionLost"),
        ),
    ];

    assert_endings(&world, &rows, 1).await;

    assert_eq!(
        counts(&world).await,
        json!({ "OutcomeUnknown": rows.len() })
    );
}
