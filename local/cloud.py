"""The local cloud: the template deployed onto AWS's stand-in, beside a real Postgres with the job board in it.

    .venv/bin/python local/cloud.py     # runs until Ctrl-C, and says what is where

From Python:

    with cloud.running() as here:
        here.send('{"type": "order.placed", "order_id": 1001}')

Everything listens on loopback, on ports that were free, and is stopped when the block ends, however it ends. Two
may run at once: what one writes is in a directory of its own, which goes away with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws
import child
import jobboard
import outbox
import postgres
import publisher
import stack

MAIL_FROM = "Job Board <no-reply@example.com>"
IDENTITY = "example.com"
PARAMETERS = {
    "MailFrom": MAIL_FROM,
    "MailReplyTo": "support@example.com",
    # The local server has no TLS.
    "DatabaseSslMode": "prefer",
    # Nobody outside this machine is written to.
    "RecipientAllowList": "",
    "RecipientRedirect": "",
}
# SQS takes no more in one request.
SEND_BATCH = 10


@dataclass(frozen=True)
class Cloud:
    home: Path
    template: Path
    # Those of the stack, some of which are known only here.
    parameters: Mapping[str, str]
    aws: aws.Aws
    board: jobboard.JobBoard
    outbox: outbox.Outbox
    publisher: publisher.Publisher
    stack: stack.Stack

    def deployed(self, stage: str = "default", name: str | None = None, **parameters: str) -> Cloud:
        """Deploys the template (again), with parameters on top of ours; gives the cloud with that stack in view."""
        given = {**self.parameters, **parameters}
        there = stack.deploy(self.home, self.aws, self.template, given, stage, name)
        return dataclasses.replace(self, stack=there)

    def send(self, *bodies: str) -> list[str]:
        """Puts messages on the queue of events, and gives their message ids in the same order."""
        sqs = self.aws.client("sqs")
        ids: list[str] = []
        for start in range(0, len(bodies), SEND_BATCH):
            batch = bodies[start : start + SEND_BATCH]
            entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(batch)]
            answer = sqs.send_message_batch(QueueUrl=self.stack.events_queue_url, Entries=entries)
            by_entry = {sent["Id"]: sent["MessageId"] for sent in answer["Successful"]}
            ids += [by_entry[str(number)] for number in range(len(batch))]
        return ids

    def publish(self, message: str) -> None:
        """Puts a message on the topic on which SES says what became of each email."""
        self.aws.client("sns").publish(TopicArn=self.stack.feedback_topic, Message=message)

    def waiting(self) -> int:
        """How many messages the queue of events still holds, those in work included."""
        return self._waiting(self.stack.events_queue_url)

    def unrecorded(self) -> int:
        """How many notifications SES has still to publish, or `feedback` to record."""
        # In this order: what is published between the two is on the queue by then.
        untold = self.publisher.untold()
        return untold + self._waiting(self.stack.feedback_queue_url)

    def _waiting(self, queue_url: str) -> int:
        kinds = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self.aws.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=kinds)
        return sum(int(answer["Attributes"][kind]) for kind in kinds)

    def purge(self) -> None:
        """Empties the queue of events."""
        self.aws.client("sqs").purge_queue(QueueUrl=self.stack.events_queue_url)

    def purge_notifications(self) -> None:
        """Empties the queue of what SES said."""
        self.aws.client("sqs").purge_queue(QueueUrl=self.stack.feedback_queue_url)

    def dead_letters(self) -> list[dict[str, Any]]:
        """The dead-letter queue's messages, left where they are."""
        answer = self.aws.client("sqs").receive_message(
            QueueUrl=self.stack.dead_letter_queue_url,
            MaxNumberOfMessages=SEND_BATCH,
            VisibilityTimeout=0,
            MessageAttributeNames=["All"],
        )
        letters: list[dict[str, Any]] = answer.get("Messages", [])
        return letters

    def notify(self, event: object) -> Any:
        """Invokes `notify` directly with an event, as Lambda would for a batch."""
        return stack.invoke(self.aws, self.stack.notify_function, event)

    def feedback(self, event: object) -> Any:
        """The same of `feedback`."""
        return stack.invoke(self.aws, self.stack.feedback_function, event)

    def log_lines(self) -> list[dict[str, Any]]:
        """The structured lines that `notify` has logged so far."""
        return self._log_lines(self.stack.notify_log_group)

    def feedback_log_lines(self) -> list[dict[str, Any]]:
        """Those of `feedback`."""
        return self._log_lines(self.stack.feedback_log_group)

    def _log_lines(self, group: str) -> list[dict[str, Any]]:
        logs = self.aws.client("logs")
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
        messages = [event["message"] for page in pages for event in page["events"]]
        return [json.loads(message) for message in messages if message.startswith("{")]


def _say_nothing(_: str) -> None:
    pass


@contextlib.contextmanager
def running(
    parameters: Mapping[str, str] | None = None, progress: Callable[[str], None] = _say_nothing
) -> Iterator[Cloud]:
    """Builds, starts everything, deploys, migrates and loads the job board."""
    aws.forget_real_accounts()
    home = Path(tempfile.mkdtemp(prefix="onemail-local-"))
    with contextlib.ExitStack() as on_exit:
        on_exit.callback(shutil.rmtree, home, ignore_errors=True)
        progress("Building the functions (sam build) ...")
        template = stack.build(home)
        progress("Starting PostgreSQL and AWS on loopback ...")
        server = on_exit.enter_context(postgres.running())
        board = jobboard.create(server)
        account = on_exit.enter_context(aws.running(home))
        says = on_exit.enter_context(publisher.running(account))
        letters = on_exit.enter_context(outbox.running(account.endpoint, says.tell))
        secret = _prepare_account(account, board)
        progress("Deploying template.yaml (sam deploy) and migrating ...")
        defaults = {**PARAMETERS, "DatabaseUrlSecretArn": secret, "SesEndpointUrl": letters.url}
        given = {**defaults, **(parameters or {})}
        deployed = stack.deploy(home, account, template, given)
        yield Cloud(home, template, given, account, board, letters, says, deployed)


def _prepare_account(account: aws.Aws, board: jobboard.JobBoard) -> str:
    """What an AWS account must have before the first deployment; gives the ARN of the database's secret."""
    account.client("sesv2").create_email_identity(EmailIdentity=IDENTITY)
    secrets = account.client("secretsmanager")
    arn: str = secrets.create_secret(Name="onemail/database-url", SecretString=board.url)["ARN"]
    return arn


def description(here: Cloud) -> str:
    """Where everything is, and how to send an event of one's own."""
    environment = " ".join(f"{name}={value}" for name, value in aws.IDENTITY.items())
    event = '{"type": "application.status_changed", "event_id": "mine-1", "application_id": 3, "new_status": "offer"}'
    return f"""\
PostgreSQL    {here.board.url}
AWS           {here.aws.endpoint}
queue         {here.stack.events_queue_url}
dead letters  {here.stack.dead_letter_queue_url}
SES's topic   {here.stack.feedback_topic}
sent emails   {here.aws.endpoint}/_ministack/ses/messages

To send an event of your own, in another terminal, as on AWS:

  export {environment} AWS_ENDPOINT_URL={here.aws.endpoint}
  .venv/bin/sam remote invoke EventsQueue --stack-name {stack.NAME} --event '{event}'
"""


def wait_for_signal() -> None:
    while True:
        signal.pause()


def main() -> None:
    child.leave_in_order()
    try:
        with running(progress=print) as here:
            print(f"\n{description(here)}\nRunning until Ctrl-C.", flush=True)
            wait_for_signal()
    except (child.Failed, postgres.PostgresError) as error:
        sys.exit(f"cloud.py: {error}")


if __name__ == "__main__":
    main()
