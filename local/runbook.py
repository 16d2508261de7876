"""docs/runbook.md tried: each alarm's condition is made to happen, the alarm rings, what its section says is done, it ends.

    .venv/bin/python local/runbook.py            # all of them
    .venv/bin/python local/runbook.py SecondEmails

What can't be tried here, or not all of it, is in NOT_TRIED and in PLANTED, and is printed.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import child
import cloud
import e2e
import e2e_feedback
import messages
import notifications
import postgres
import stack
from alarms import Alarms
from expect import emails_of, emptied, equal, feedback_of, only, outcomes_of, recorded, rows_of, send_status_change, until

RUNBOOK = Path(__file__).resolve().parent.parent / "docs" / "runbook.md"
# A second passes for an hour.
HURRIED = 3600
# For a notification that failed to be given up: after one failure, and at once, instead of MaxReceiveCount of them.
RECEIVES = 1
COMES_BACK_SECONDS = 15

# The local cloud has none of their metrics.
NOT_TRIED = """
NotifyErrors FeedbackErrors NewVersionErrors NotifyThrottles FeedbackThrottles NotifySlow
BounceRate ComplaintRate AccountBounceRate AccountComplaintRate ProxyPinned
""".split()
# Those whose condition isn't caused but put there.
PLANTED = {"SubscriptionDeadLetters": "the local cloud's SNS drops what a queue refuses, so the dead letter is put there by hand"}


def rings(alarms: Alarms, name: str) -> None:
    until(lambda: alarms.ring(name), f"{name} rings")


def ends(here: cloud.Cloud, name: str, hurried: float = 1) -> None:
    """Whatever happened before is past: the alarm looks at what comes now."""
    alarms = Alarms(here, hurried)
    until(lambda: not alarms.ring(name), f"{name} ends")


def move_back(here: cloud.Cloud, source: str, destination: str) -> None:
    """What a move task does, which MiniStack doesn't have."""
    sqs = here.aws.client("sqs")
    while True:
        answer = sqs.receive_message(QueueUrl=source, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        if not answer.get("Messages"):
            return
        for message in answer["Messages"]:
            attributes = message.get("MessageAttributes", {})
            sqs.send_message(QueueUrl=destination, MessageBody=message["Body"], MessageAttributes=attributes)
            sqs.delete_message(QueueUrl=source, ReceiptHandle=message["ReceiptHandle"])


def delete_dead_letters(here: cloud.Cloud) -> None:
    here.aws.client("sqs").purge_queue(QueueUrl=here.stack.dead_letter_queue_url)


def EventsDeadLetters(here: cloud.Cloud) -> None:
    alarms = Alarms(here)
    event_id = refused_for_its_address(here)
    rings(alarms, "EventsDeadLetters")
    equal(only(here.dead_letters())["MessageAttributes"]["onemail_reason"]["StringValue"], "impossible_address")
    mend_the_address(here)
    is_sent_when_moved_back(here, event_id)
    ends(here, "EventsDeadLetters")


def FeedbackDeadLetters(here: cloud.Cloud) -> None:
    """One notification for the database's sake, and one that is none."""
    # Of the emails before.
    recorded(here)
    alarms = Alarms(here)
    event_id, body = a_notification(here)
    none = "this is no notification"
    dead = here.stack.feedback_dead_letter_queue_url

    def lie_there(*bodies: str) -> bool:
        return sorted(message["Body"] for message in here.aws.messages_on(dead)) == sorted(bodies)

    with given_up_soon(here, here.stack.feedback_queue_url):
        with away(here, "email_feedback"):
            here.publish(body)
            here.publish(none)
            until(lambda: lie_there(body, none), "the redrive policy has moved both")
        rings(alarms, "FeedbackDeadLetters")
        move_back(here, dead, here.stack.feedback_queue_url)
        is_recorded(here, event_id)
        until(lambda: lie_there(none), "the other lies there again")
    here.aws.client("sqs").purge_queue(QueueUrl=dead)
    ends(here, "FeedbackDeadLetters")


def SubscriptionDeadLetters(here: cloud.Cloud) -> None:
    """Planted."""
    alarms = Alarms(here)
    event_id, body = a_notification(here)
    dead = here.stack.subscription_dead_letter_queue_url
    here.aws.client("sqs").send_message(QueueUrl=dead, MessageBody=body)
    rings(alarms, "SubscriptionDeadLetters")
    move_back(here, dead, here.stack.feedback_queue_url)
    is_recorded(here, event_id)
    ends(here, "SubscriptionDeadLetters")


def CleanupDeadLetters(here: cloud.Cloud) -> None:
    """Handed over as the schedule does, cleanup fails, and fails again when Lambda tries again."""
    alarms = Alarms(here)
    dead = here.stack.cleanup_dead_letter_queue_url
    with away(here, "email_feedback"):
        here.aws.client("lambda").invoke(FunctionName=here.stack.cleanup_function, InvocationType="Event", Payload=b"{}")
        rings(alarms, "CleanupDeadLetters")
    equal("deleted" in stack.invoke(here.aws, here.stack.cleanup_function, {}), True)
    here.aws.client("sqs").purge_queue(QueueUrl=dead)
    ends(here, "CleanupDeadLetters")


def EventsWaiting(here: cloud.Cloud) -> None:
    alarms = Alarms(here, HURRIED)
    switch(here, here.stack.notify_function, False)
    event_id = send_status_change(here, 13, "interview")
    rings(alarms, "EventsWaiting")
    switch(here, here.stack.notify_function, True)
    is_sent(here, event_id)
    ends(here, "EventsWaiting", HURRIED)


def FeedbackWaiting(here: cloud.Cloud) -> None:
    alarms = Alarms(here, HURRIED)
    switch(here, here.stack.feedback_function, False)
    event_id, body = a_notification(here)
    here.publish(body)
    rings(alarms, "FeedbackWaiting")
    switch(here, here.stack.feedback_function, True)
    is_recorded(here, event_id)
    ends(here, "FeedbackWaiting", HURRIED)


def EventsFailing(here: cloud.Cloud) -> None:
    fails_until_sending_is_allowed(here, "EventsFailing")


def NotifySetupErrors(here: cloud.Cloud) -> None:
    fails_until_sending_is_allowed(here, "NotifySetupErrors")


def FeedbackFailing(here: cloud.Cloud) -> None:
    feedback_fails_until_granted(here, "FeedbackFailing")


def FeedbackSetupErrors(here: cloud.Cloud) -> None:
    feedback_fails_until_granted(here, "FeedbackSetupErrors")


def OutcomesUnknown(here: cloud.Cloud) -> None:
    alarms = Alarms(here)
    with here.publisher.held():
        here.outbox.lose_replies(3)
        events = [send_status_change(here, 14 + number, "offer") for number in range(3)]
        rings(alarms, "OutcomesUnknown")
        equal([rows_of(here, event_id) for event_id in events], [[], [], []])
    # Nothing is to be done but see that feedback works: it settles them.
    until(lambda: all(rows_of(here, event_id) for event_id in events), "SES's word settles them")
    equal([only(rows_of(here, event_id))["settled_by"] for event_id in events], ["ses"] * 3)
    here.purge()
    ends(here, "OutcomesUnknown")


def SecondEmails(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 8, "hired")
    emptied(here)
    recorded(here)
    alarms = Alarms(here)
    e2e_feedback.publish(here, notifications.send(e2e_feedback.email_that_nobody_claimed(here, event_id)))
    rings(alarms, "SecondEmails")
    kinds = [row["kind"] for row in feedback_of(here, event_id)]
    equal(kinds.count("send"), 2)
    ends(here, "SecondEmails")


def EventsHeld(here: cloud.Cloud) -> None:
    """Both decisions: the one was sent, the other is to be sent."""
    here.deployed(ClaimMode="lease", InDoubt="hold", InDoubtWait="1")
    alarms = Alarms(here)
    sqs = here.aws.client("sqs")
    with here.publisher.held():
        here.outbox.lose_replies(2)
        sent, resent = [send_status_change(here, 18 + number, "offer") for number in range(2)]
        until(lambda: all(outcome_of(here, event_id) == "unknown" for event_id in (sent, resent)), "both are in doubt")
        rings(alarms, "EventsHeld")
        here.purge()
        here.board.run(
            "UPDATE processed_events SET outcome = 'sent', settled_by = 'operator', lease_until = NULL "
            f"WHERE event_id = '{sent}' AND outcome = 'unknown'"
        )
        here.board.run(f"DELETE FROM processed_events WHERE event_id = '{resent}' AND outcome = 'unknown'")
        bodies = [messages.status_change(sent, 18, "offer"), messages.status_change(resent, 19, "offer")]
        answers = [sqs.send_message(QueueUrl=here.stack.events_queue_url, MessageBody=body) for body in bodies]
        emptied(here)
        equal([outcomes_of(here, answer["MessageId"]) for answer in answers], [["duplicate"], ["sent"]])
    equal([len(emails_of(here, event_id)) for event_id in (sent, resent)], [1, 2])
    recorded(here)
    ends(here, "EventsHeld")
    here.deployed(ClaimMode="transaction", InDoubt="resend", InDoubtWait="120")


def RowsHeld(here: cloud.Cloud) -> None:
    """A row whose worker and whose message are long gone, and whose email was not sent."""
    alarms = Alarms(here)
    event_id = str(uuid.uuid4())
    here.board.run(
        "INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256, processed_at, lease_until) "
        f"VALUES ('{event_id}', 'application.status_changed', 'sending', 'worker', '\\x00', now() - interval '15 days', "
        "now() - interval '15 days')"
    )
    stack.invoke(here.aws, here.stack.cleanup_function, {})
    equal(outcome_of(here, event_id), "unknown")
    rings(alarms, "RowsHeld")
    here.board.run(f"DELETE FROM processed_events WHERE event_id = '{event_id}' AND outcome = 'unknown'")
    here.send(messages.status_change(event_id, 22, "interview"))
    is_sent(here, event_id)
    ends(here, "RowsHeld")


def MalformedEvents(here: cloud.Cloud) -> None:
    alarms = Alarms(here)
    here.send("this is no event")
    rings(alarms, "MalformedEvents")
    delete_dead_letters(here)
    ends(here, "MalformedEvents")


def UnknownTypes(here: cloud.Cloud) -> None:
    alarms = Alarms(here)
    here.send(json.dumps({"type": "nobody.knows", "event_id": str(uuid.uuid4())}))
    rings(alarms, "UnknownTypes")
    delete_dead_letters(here)
    ends(here, "UnknownTypes")


def KeysReused(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 9, "interview")
    emptied(here)
    alarms = Alarms(here)
    here.send(messages.status_change(event_id, 10, "interview"))
    rings(alarms, "KeysReused")
    # With a key of its own.
    again = send_status_change(here, 10, "interview")
    delete_dead_letters(here)
    is_sent(here, again)
    ends(here, "KeysReused")


def ImpossibleAddresses(here: cloud.Cloud) -> None:
    alarms = Alarms(here)
    event_id = refused_for_its_address(here)
    rings(alarms, "ImpossibleAddresses")
    mend_the_address(here)
    is_sent_when_moved_back(here, event_id)
    ends(here, "ImpossibleAddresses")


def ImpossibleData(here: cloud.Cloud) -> None:
    alarms = Alarms(here)
    # A query that takes a text for a number.
    here.board.run(
        "ALTER TABLE jobs_application RENAME TO applications; "
        "CREATE VIEW jobs_application AS SELECT * FROM applications WHERE status::integer > 0"
    )
    try:
        event_id = send_status_change(here, 21, "interview")
        rings(alarms, "ImpossibleData")
    finally:
        here.board.run("DROP VIEW jobs_application; ALTER TABLE applications RENAME TO jobs_application")
    is_sent_when_moved_back(here, event_id)
    ends(here, "ImpossibleData")


def MessagesRefused(here: cloud.Cloud) -> None:
    alarms = Alarms(here)
    here.outbox.refuse(1, "MessageRejected")
    event_id = send_status_change(here, 20, "interview")
    rings(alarms, "MessagesRefused")
    is_sent_when_moved_back(here, event_id)
    ends(here, "MessagesRefused")


def fails_until_sending_is_allowed(here: cloud.Cloud, name: str) -> None:
    alarms = Alarms(here)
    here.outbox.refuse(1)
    event_id = send_status_change(here, 4, "interview")
    rings(alarms, name)
    # It comes back by itself in half a minute; moved back, it comes at once.
    here.send(messages.status_change(event_id, 4, "interview"))
    until(lambda: emails_of(here, event_id) != [], "it is sent")
    here.purge()
    ends(here, name)


def feedback_fails_until_granted(here: cloud.Cloud, name: str) -> None:
    alarms = Alarms(here)
    event_id, body = a_notification(here)
    with away(here, "email_feedback"):
        here.publish(body)
        rings(alarms, name)
    here.publish(body)
    is_recorded(here, event_id)
    here.purge_notifications()
    ends(here, name)


def is_sent(here: cloud.Cloud, event_id: str) -> None:
    """Once, by the time that the queue is empty."""
    emptied(here)
    only(emails_of(here, event_id))


def is_sent_when_moved_back(here: cloud.Cloud, event_id: str) -> None:
    move_back(here, here.stack.dead_letter_queue_url, here.stack.events_queue_url)
    is_sent(here, event_id)


def is_recorded(here: cloud.Cloud, event_id: str) -> None:
    """Something that SES said of the event's email."""
    until(lambda: feedback_of(here, event_id) != [], "it is recorded")


@contextlib.contextmanager
def away(here: cloud.Cloud, table: str) -> Iterator[None]:
    here.board.run(f"ALTER TABLE {table} RENAME TO {table}_away")
    try:
        yield
    finally:
        here.board.run(f"ALTER TABLE {table}_away RENAME TO {table}")


@contextlib.contextmanager
def given_up_soon(here: cloud.Cloud, queue: str) -> Iterator[None]:
    """By the queue's own redrive policy, with smaller numbers than the template's."""
    sqs = here.aws.client("sqs")
    names = ["RedrivePolicy", "VisibilityTimeout"]
    before = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    policy = {**json.loads(before["RedrivePolicy"]), "maxReceiveCount": RECEIVES}
    hurried = {"RedrivePolicy": json.dumps(policy), "VisibilityTimeout": str(COMES_BACK_SECONDS)}
    sqs.set_queue_attributes(QueueUrl=queue, Attributes=hurried)
    try:
        yield
    finally:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={name: before[name] for name in names})


def refused_for_its_address(here: cloud.Cloud) -> str:
    here.board.run("UPDATE auth_user SET email = 'no address' WHERE id = 5")
    return send_status_change(here, 3, "interview")


def mend_the_address(here: cloud.Cloud) -> None:
    here.board.run("UPDATE auth_user SET email = 'sam@example.com' WHERE id = 5")


def a_notification(here: cloud.Cloud) -> tuple[str, str]:
    """Of an email, and its event."""
    event_id = str(uuid.uuid4())
    return event_id, json.dumps(notifications.bounce(e2e_feedback.email_that_nobody_claimed(here, event_id)))


def outcome_of(here: cloud.Cloud, event_id: str) -> Any:
    rows = rows_of(here, event_id)
    return rows[0]["outcome"] if rows else None


def switch(here: cloud.Cloud, function: str, enabled: bool) -> None:
    """As the runbook has it."""
    functions = here.aws.client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        if function in mapping["FunctionArn"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)


TRIED: list[Callable[[cloud.Cloud], None]] = [
    EventsDeadLetters,
    FeedbackDeadLetters,
    SubscriptionDeadLetters,
    CleanupDeadLetters,
    EventsWaiting,
    FeedbackWaiting,
    EventsFailing,
    NotifySetupErrors,
    FeedbackFailing,
    FeedbackSetupErrors,
    OutcomesUnknown,
    SecondEmails,
    MalformedEvents,
    UnknownTypes,
    KeysReused,
    ImpossibleAddresses,
    ImpossibleData,
    MessagesRefused,
    RowsHeld,
    EventsHeld,
]


def say_what_is_not_tried() -> None:
    sections = set(re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE))
    untold = sections - {attempt.__name__ for attempt in TRIED} - set(NOT_TRIED)
    if untold:
        raise SystemExit(f"neither tried nor in NOT_TRIED: {', '.join(sorted(untold))}")
    print(f"# not tried, since the local cloud has none of their metrics: {', '.join(NOT_TRIED)}", flush=True)
    for name, why in PLANTED.items():
        print(f"# tried in part - {name}: {why}", flush=True)


def main(names: list[str]) -> int:
    child.leave_in_order()
    say_what_is_not_tried()
    chosen = [attempt for attempt in TRIED if not names or attempt.__name__ in names]
    try:
        with cloud.running(progress=lambda text: print(text, file=sys.stderr, flush=True)) as here:
            results = [e2e.passes(attempt, here) for attempt in chosen]
    except (child.Failed, postgres.PostgresError) as error:
        print(f"not ok - the local cloud starts and the template is deployed: {error}")
        return 1
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
