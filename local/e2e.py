"""The end-to-end test: messages on the deployed stack's queue, and what becomes of them.

    .venv/bin/python local/e2e.py

One line for each check, `ok - ...` or `not ok - ...`; the exit code is 1 if there is one of the latter.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import uuid
from collections.abc import Callable
from pathlib import Path

import child
import cloud
import e2e_feedback
import e2e_stack
import endings
import listeners
import messages
import ports
import postgres
import stack
from expect import (
    FIRST_DELAY_SECONDS,
    PATIENCE_SECONDS,
    between,
    comes_back_in,
    emails_of,
    emptied,
    equal,
    only,
    outcomes_of,
    rows_of,
    send_status_change,
    until,
)

EVENTS = stack.ROOT / "events"

Check = Callable[[cloud.Cloud], None]


def the_migration_is_applied_once(here: cloud.Cloud) -> None:
    answer = stack.invoke(here.aws, here.stack.migrate_function, {})
    equal(answer["applied"], [])
    equal(answer["schema_version"] >= 1, True)


def a_status_change_becomes_one_email_and_its_row(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 3, "interview")
    emptied(here)
    email = only(emails_of(here, event_id))
    equal(email.to, ["Sam <sam@example.com>"])
    equal(email.request["FromEmailAddress"], cloud.MAIL_FROM)
    equal(email.request["ReplyToAddresses"], [cloud.PARAMETERS["MailReplyTo"]])
    equal(email.configuration_set, here.stack.configuration_set)
    equal(email.tags, {"event_type": "application-status_changed", "event_id": event_id})
    body = email.request["Content"]["Simple"]["Body"]
    equal([kind for kind in ("Html", "Text") if "Backend Engineer" not in body[kind]["Data"]], [])
    row = only(rows_of(here, event_id))
    equal((row["outcome"], row["settled_by"], row["ses_message_id"]), ("sent", "worker", email.message_id))


def one_event_in_two_messages_is_one_email(here: cloud.Cloud) -> None:
    event_id = str(uuid.uuid4())
    sent = here.send(*[messages.status_change(event_id, 3, "offer")] * 2)
    emptied(here)
    only(emails_of(here, event_id))
    equal(sorted(outcomes_of(here, *sent)), ["duplicate", "sent"])


def an_event_that_comes_again_later_is_one_email(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 3, "hired")
    emptied(here)
    here.send(messages.status_change(event_id, 3, "hired"))
    emptied(here)
    only(emails_of(here, event_id))


def a_deleted_application_is_skipped(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 9999, "rejected")
    emptied(here)
    equal(emails_of(here, event_id), [])
    equal(only(rows_of(here, event_id))["outcome"], "skipped")


def an_order_is_confirmed_once(here: cloud.Cloud) -> None:
    here.send(*[messages.order_placed(1003)] * 3)
    emptied(here)
    email = only(emails_of(here, "order-1003"))
    equal(email.tags, {"event_type": "order-placed", "event_id": "order-1003"})


def a_refused_send_leaves_no_claim_and_a_later_try_sends(here: cloud.Cloud) -> None:
    here.outbox.refuse(1)
    event_id = send_status_change(here, 4, "interview")
    until(lambda: any(line.get("event_id") == event_id for line in here.log_lines()), "the first try is logged")
    equal((emails_of(here, event_id), rows_of(here, event_id)), ([], []))
    # The function told SQS when this message comes back: in half a minute, and not at the queue's own timeout.
    between(0, comes_back_in(only(here.aws.messages_on(here.stack.events_queue_url))), FIRST_DELAY_SECONDS)
    # Another one about the same event need not wait.
    here.send(messages.status_change(event_id, 4, "interview"))
    until(lambda: here.waiting() == 1, "the second message is handled")
    only(emails_of(here, event_id))
    equal(only(rows_of(here, event_id))["outcome"], "sent")
    equal([line for line in here.log_lines() if "could not be told" in line.get("message", "")], [])
    here.purge()


def a_poison_message_is_a_dead_letter_and_its_neighbours_are_sent(here: cloud.Cloud) -> None:
    good = [str(uuid.uuid4()) for _ in range(4)]
    bodies = [messages.status_change(event_id, 5 + number, "interview") for number, event_id in enumerate(good)]
    poison = here.send(*bodies[:2], "this is no event", *bodies[2:])[2]
    emptied(here)
    equal([len(emails_of(here, event_id)) for event_id in good], [1] * len(good))
    letter = only([letter for letter in here.dead_letters() if endings.original_id(letter) == poison])
    equal(letter["Body"], "this is no event")
    equal(letter["MessageAttributes"]["onemail_reason"]["StringValue"], "malformed")


def a_key_that_comes_again_with_another_payload_is_a_dead_letter_as_it_came(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 9, "interview")
    emptied(here)
    other = messages.status_change(event_id, 10, "interview")
    attribute = {"StringValue": "job-board", "DataType": "String"}
    sent = here.aws.client("sqs").send_message(
        QueueUrl=here.stack.events_queue_url, MessageBody=other, MessageAttributes={"producer": attribute}
    )["MessageId"]
    emptied(here)
    only(emails_of(here, event_id))
    letter = only([letter for letter in here.dead_letters() if endings.original_id(letter) == sent])
    attributes = letter["MessageAttributes"]
    equal((letter["Body"], attributes["producer"]), (other, attribute))
    equal(attributes["onemail_reason"]["StringValue"], "key_reused")
    equal(attributes["onemail_event_id"]["StringValue"], event_id)


def what_nobody_moves_the_redrive_policy_moves(here: cloud.Cloud) -> None:
    sqs = here.aws.client("sqs")
    for queue, dead_letter_queue in (
        (here.stack.events_queue_url, here.stack.dead_letter_queue_url),
        (here.stack.feedback_queue_url, here.stack.feedback_dead_letter_queue_url),
    ):
        policy = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["RedrivePolicy"])
        target = sqs.get_queue_attributes(QueueUrl=dead_letter_queue, AttributeNames=["QueueArn"])
        redrive = json.loads(policy["Attributes"]["RedrivePolicy"])
        equal(redrive["deadLetterTargetArn"], target["Attributes"]["QueueArn"])
        equal(int(redrive["maxReceiveCount"]) >= 5, True)


def two_hundred_events_with_duplicates_are_two_hundred_emails(here: cloud.Cloud) -> None:
    events = [(str(uuid.uuid4()), 1 + number % 40) for number in range(200)]
    bodies = [messages.status_change(event_id, application, "reviewing") for event_id, application in events]
    here.send(*bodies, *bodies[::4])
    emptied(here)
    sent = [email.tags.get("event_id") for email in here.outbox.emails()]
    equal([event_id for event_id, _ in events if sent.count(event_id) != 1], [])


def each_sample_event_is_answered(here: cloud.Cloud) -> None:
    """As `sam local invoke` does with the same files."""
    for path in sorted(EVENTS.glob("*.json")):
        event = json.loads(path.read_text())
        if path.stem == "migrate":
            equal(set(stack.invoke(here.aws, here.stack.migrate_function, event)), {"applied", "schema_version"})
            continue
        answer = here.feedback(event) if path.stem.startswith("feedback_") else here.notify(event)
        # Nothing is left to be reported: what can't be sent was moved to the dead-letter queue.
        equal((path.name, answer), (path.name, {"batchItemFailures": []}))


def what_is_no_sqs_event_is_an_error(here: cloud.Cloud) -> None:
    payloads: list[object] = [{}, {"Records": None}, [], "hello"]
    for invoke in (here.notify, here.feedback):
        for payload in payloads:
            try:
                invoke(payload)
            except child.Failed:
                continue
            raise AssertionError(f"{payload!r} was answered by `{invoke.__name__}`")


def no_address_is_logged(here: cloud.Cloud) -> None:
    addresses = [row["email"] for row in here.board.rows("SELECT email FROM auth_user")]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in here.log_lines() + here.feedback_log_lines())
    equal([address for address in addresses if address in text], [])


def everything_listens_on_loopback_alone(_: cloud.Cloud) -> None:
    ports = listeners.of_process_and_its_children()
    equal([address for address in ports if not address.startswith("127.0.0.1:")], [])
    # Postgres, MiniStack and the door to SES at the least.
    equal(len(ports) >= 3, True)


def a_reserved_port_is_its_own_before_and_after_somebody_listens(_: cloud.Cloud) -> None:
    with ports.reserved() as port:
        for listens in (False, True, False):
            with contextlib.ExitStack() as listening:
                if listens:
                    listening.enter_context(socket.create_server(("127.0.0.1", port)))
                with socket.socket() as other, contextlib.suppress(OSError):
                    other.bind(("127.0.0.1", port))
                    raise AssertionError(f"somebody else got the port, listens={listens}")


def a_second_copy_runs_beside_it_and_stops_when_told(_: cloud.Cloud) -> None:
    with tempfile.TemporaryDirectory(prefix="onemail-e2e-") as temporary:
        # Postgres, which can't run as root, must get into it.
        os.chmod(temporary, 0o755)
        start_and_stop_a_copy(Path(temporary))
        equal(list(Path(temporary).iterdir()), [])


def start_and_stop_a_copy(temporary: Path) -> None:
    program = [sys.executable, "-u", str(Path(cloud.__file__))]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as copy:
        said = []
        try:
            for line in copy.stdout or ():
                said.append(line)
                if "until Ctrl-C" in line:
                    break
            children = listeners.children_of(copy.pid)
            copy.send_signal(signal.SIGTERM)
            equal((copy.wait(PATIENCE_SECONDS), len(children) >= 2), (128 + signal.SIGTERM, True))
        except BaseException:
            copy.kill()
            print("".join(said), file=sys.stderr)
            raise
    # The last of them were sent a signal that none survives, and may still be at their end.
    until(lambda: not any(map(listeners.is_running, children)), "all that the copy has started is gone")


CHECKS: list[Check] = [
    the_migration_is_applied_once,
    a_status_change_becomes_one_email_and_its_row,
    one_event_in_two_messages_is_one_email,
    an_event_that_comes_again_later_is_one_email,
    a_deleted_application_is_skipped,
    an_order_is_confirmed_once,
    a_refused_send_leaves_no_claim_and_a_later_try_sends,
    a_poison_message_is_a_dead_letter_and_its_neighbours_are_sent,
    a_key_that_comes_again_with_another_payload_is_a_dead_letter_as_it_came,
    what_nobody_moves_the_redrive_policy_moves,
    *e2e_feedback.CHECKS,
    two_hundred_events_with_duplicates_are_two_hundred_emails,
    each_sample_event_is_answered,
    what_is_no_sqs_event_is_an_error,
    *e2e_stack.CHECKS,
    no_address_is_logged,
    *e2e_feedback.CHECKS_OF_THE_RUN,
    everything_listens_on_loopback_alone,
    a_reserved_port_is_its_own_before_and_after_somebody_listens,
    a_second_copy_runs_beside_it_and_stops_when_told,
]


def passes(check: Check, here: cloud.Cloud) -> bool:
    name = check.__name__.replace("_", " ")
    try:
        check(here)
    except Exception as error:
        print(f"not ok - {name}: {error}", flush=True)
        if not isinstance(error, AssertionError):
            traceback.print_exc()
        # The next one starts with empty queues all the same.
        here.purge()
        here.purge_notifications()
        return False
    print(f"ok - {name}", flush=True)
    return True


def main() -> int:
    child.leave_in_order()
    try:
        with cloud.running(progress=lambda text: print(text, file=sys.stderr, flush=True)) as here:
            results = [passes(check, here) for check in CHECKS]
            if not all(results):
                print(here.aws.log.read_text()[-6000:], file=sys.stderr)
    except (child.Failed, postgres.PostgresError) as error:
        print(f"not ok - the local cloud starts and the template is deployed: {error}")
        return 1
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
