"""The checks of the end-to-end test that deploy: other stacks beside the first, and the first one anew."""

from __future__ import annotations

import io
import json
import threading
import urllib.parse
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import child
import cloud
import deployment
import messages
import notifications
import stack
from e2e_feedback import email_that_nobody_claimed, publish
from expect import emails_of, emptied, equal, feedback_of, only, outcomes_of, rows_of, send_status_change, until

# What a producer puts on the queue while the stack is updated, one after another.
PAUSE_SECONDS = 0.05


def production_as_samconfig_has_it_sends(here: cloud.Cloud) -> None:
    there = here.deployed(stage="prod")
    event_id = send_status_change(there, 3, "interview")
    emptied(there)
    email = only(emails_of(there, event_id))
    equal(email.configuration_set, "onemail-prod")
    # What SES says of it comes back through this stack's own topic and queue.
    until(lambda: there.unrecorded() == 0, "all that SES said is recorded")
    equal([line["outcome"] for line in there.feedback_log_lines() if line.get("event_id") == event_id], ["recorded"] * 2)


def a_trial_as_samconfig_has_it_writes_to_nobody_but_the_simulator(here: cloud.Cloud) -> None:
    trial = stack.parameters_of("default")
    there = here.deployed(name="onemail-trial", **trial)
    event_id = send_status_change(there, 3, "interview")
    emptied(there)
    equal(only(emails_of(there, event_id)).to, [f"Sam <{trial['RecipientRedirect']}>"])
    equal(only(rows_of(there, event_id))["outcome"], "sent")
    until(lambda: there.unrecorded() == 0, "all that SES said is recorded")


def a_trial_without_a_redirect_withholds(here: cloud.Cloud) -> None:
    there = here.deployed(name="onemail-trial", RecipientAllowList="@simulator.amazonses.com")
    event_id = send_status_change(there, 3, "offer")
    emptied(there)
    equal(emails_of(there, event_id), [])
    equal(only(rows_of(there, event_id))["outcome"], "withheld")


def a_secret_in_the_form_of_rds_is_read_by_the_functions_and_is_in_no_environment(here: cloud.Cloud) -> None:
    server = urllib.parse.urlsplit(here.board.url)
    password = str(uuid.uuid4())
    secret = {
        "username": server.username,
        # The local server asks for none.
        "password": password,
        "host": server.hostname,
        "port": server.port,
        "dbname": server.path.strip("/"),
    }
    arn = here.aws.client("secretsmanager").create_secret(
        Name="onemail/database", SecretString=json.dumps(secret)
    )["ARN"]
    there = here.deployed(name="onemail-secret", DatabaseSecretArn=arn, DatabaseUrlSecretArn="")
    event_id = send_status_change(there, 3, "interview")
    emptied(there)
    only(emails_of(there, event_id))
    until(lambda: there.unrecorded() == 0, "all that SES said is recorded")
    for function in (there.stack.notify_function, there.stack.feedback_function, there.stack.migrate_function):
        configuration = here.aws.client("lambda").get_function_configuration(FunctionName=function)
        equal((function, password in json.dumps(configuration["Environment"])), (function, False))


def lease_mode_is_a_parameter(here: cloud.Cloud) -> None:
    there = here.deployed(name="onemail-lease", ClaimMode="lease", InDoubt="hold")
    event_id = send_status_change(there, 3, "interview")
    emptied(there)
    only(emails_of(there, event_id))
    equal(only(rows_of(there, event_id))["outcome"], "sent")


def a_fifo_stack_sends_each_groups_emails_in_order_and_keeps_its_poison(here: cloud.Cloud) -> None:
    there = here.deployed(name="onemail-fifo", Fifo="true")
    sqs = here.aws.client("sqs")
    events = [str(uuid.uuid4()) for _ in range(6)]
    for number, event_id in enumerate(events):
        sqs.send_message(
            QueueUrl=there.stack.events_queue_url,
            MessageBody=messages.status_change(event_id, 11, "interview"),
            MessageGroupId=f"group-{number % 2}",
        )
    sqs.send_message(QueueUrl=there.stack.events_queue_url, MessageBody="no event", MessageGroupId="group-2")
    emptied(there)
    sent = [email.tags["event_id"] for email in here.outbox.emails() if email.tags.get("event_id") in events]
    for group in (0, 1):
        equal([event_id for event_id in sent if events.index(event_id) % 2 == group], events[group::2])
    letter = only(there.dead_letters())
    equal((letter["Body"], letter["MessageAttributes"]["onemail_reason"]["StringValue"]), ("no event", "malformed"))


def a_changed_parameter_takes_effect_and_no_event_is_lost_meanwhile(here: cloud.Cloud) -> None:
    """Each update publishes a version of `notify` and moves the alias, while events keep coming."""
    before = version(here)
    with producing(here) as sent:
        here.deployed(LogLevel="DEBUG", MemorySize="512")
        until(lambda: len(sent) > 20, "some events were put on the queue")
    equal(version(here) > before, True)
    configuration = here.aws.client("lambda").get_function_configuration(
        FunctionName=here.stack.notify_function, Qualifier="live"
    )
    equal(configuration["MemorySize"], 512)
    until(lambda: all(rows_of(here, event_id) for event_id in sent), "each event has its row")
    equal([event_id for event_id in sent if len(emails_of(here, event_id)) != 1], [])
    # A parameter that is left out keeps its value.
    here.deployed(LogLevel="INFO", MemorySize="256")
    equal(version(here) > before + 1, True)


def an_update_that_changes_nothing_publishes_nothing(here: cloud.Cloud) -> None:
    before = version(here)
    here.deployed()
    equal(version(here), before)


def a_deployment_migrates_with_the_new_code_before_anything_else(here: cloud.Cloud) -> None:
    """A canary would meet the old tables otherwise, and be rolled back."""
    to_an_older_version(here)

    def deploy_stack() -> None:
        equal(leases_are_in_the_ledger(here), True)
        raise child.Failed("it is enough to have come so far")

    equal(failure_of_a_deployment(here, deploy_stack), "it is enough to have come so far")
    # The version that was running goes on.
    event_id = send_status_change(here, 3, "interview")
    emptied(here)
    only(emails_of(here, event_id))
    here.deployed()


def where_a_migration_fails_nothing_is_deployed(here: cloud.Cloud) -> None:
    to_an_older_version(here)
    # The migration wants to add it.
    here.board.run("ALTER TABLE processed_events ADD COLUMN attempt bigint")

    def deploy_stack() -> None:
        raise AssertionError("the stack was deployed")

    said = failure_of_a_deployment(here, deploy_stack)
    equal([words for words in ("V3", "nothing was deployed") if words not in said], [])
    here.board.run("ALTER TABLE processed_events DROP COLUMN attempt")
    here.deployed()
    equal(leases_are_in_the_ledger(here), True)


def to_an_older_version(here: cloud.Cloud) -> None:
    """The tables as they were before the last migration, and a `migrate` that doesn't know it."""
    here.board.run(
        "ALTER TABLE processed_events DROP COLUMN attempt, DROP COLUMN lease_until;"
        "DELETE FROM onemail_migrations WHERE version = 3"
    )
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        package.writestr(entry, "#!/bin/sh\nexit 1\n")
    here.aws.client("lambda").update_function_code(
        FunctionName=here.stack.migrate_function, ZipFile=archive.getvalue()
    )


def leases_are_in_the_ledger(here: cloud.Cloud) -> bool:
    columns = here.board.rows(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'processed_events'"
    )
    return {"attempt", "lease_until"} <= {column["column_name"] for column in columns}


def failure_of_a_deployment(here: cloud.Cloud, deploy_stack: Callable[[], None]) -> str:
    account = deployment.Account(here.aws.client("cloudformation"), here.aws.client("lambda"))
    try:
        deployment.deploy(account, here.stack.name, here.template, deploy_stack)
    except child.Failed as error:
        return str(error)
    raise AssertionError("it did not fail")


def the_switch_keeps_events_on_the_queue_and_loses_none(here: cloud.Cloud) -> None:
    here.deployed(SendingEnabled="false")
    event_id = str(uuid.uuid4())
    message = only(here.send(messages.status_change(event_id, 12, "interview")))
    # feedback is not stopped, and has recorded what it is told now before the event is touched.
    other = str(uuid.uuid4())
    publish(here, notifications.bounce(email_that_nobody_claimed(here, other)))
    until(lambda: feedback_of(here, other) != [], "feedback has worked")
    equal((here.waiting(), outcomes_of(here, message), emails_of(here, event_id)), (1, [], []))
    here.deployed(SendingEnabled="true")
    emptied(here)
    only(emails_of(here, event_id))


def a_guided_deployment_is_content_with_an_empty_answer_to_each_question(here: cloud.Cloud) -> None:
    """It would ask for ever for a parameter that is hidden (NoEcho)."""
    config = here.home / "guided.toml"
    config.write_text("version = 0.1\n")
    done = stack.deploy_guided(here.home, here.aws, here.template, here.parameters, "onemail-guided", config)
    equal((done.returncode, done.stderr if done.returncode else ""), (0, ""))
    equal("DatabaseUrlSecretArn" in config.read_text(), True)


def version(here: cloud.Cloud) -> int:
    """Of `notify`, which the queue calls."""
    alias = here.aws.client("lambda").get_alias(FunctionName=here.stack.notify_function, Name="live")
    return int(alias["FunctionVersion"])


@contextmanager
def producing(here: cloud.Cloud) -> Iterator[list[str]]:
    """Puts events on the queue for the length of the block, and gives their ids."""
    sent: list[str] = []
    enough = threading.Event()

    def produce() -> None:
        while not enough.wait(PAUSE_SECONDS):
            sent.append(send_status_change(here, 1 + len(sent) % 40, "reviewing"))

    producer = threading.Thread(target=produce, name="producer")
    producer.start()
    try:
        yield sent
    finally:
        enough.set()
        producer.join()


CHECKS = [
    production_as_samconfig_has_it_sends,
    a_trial_as_samconfig_has_it_writes_to_nobody_but_the_simulator,
    a_trial_without_a_redirect_withholds,
    a_secret_in_the_form_of_rds_is_read_by_the_functions_and_is_in_no_environment,
    lease_mode_is_a_parameter,
    a_fifo_stack_sends_each_groups_emails_in_order_and_keeps_its_poison,
    an_update_that_changes_nothing_publishes_nothing,
    a_changed_parameter_takes_effect_and_no_event_is_lost_meanwhile,
    a_deployment_migrates_with_the_new_code_before_anything_else,
    where_a_migration_fails_nothing_is_deployed,
    the_switch_keeps_events_on_the_queue_and_loses_none,
    a_guided_deployment_is_content_with_an_empty_answer_to_each_question,
]
