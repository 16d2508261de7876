"""What the function needs on this machine, and how it gets at it from inside a container."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aws
import cloud
import doorway
import jobboard
import outbox
import postgres

# This machine, as containers know it.
HOST = "host.docker.internal"


@dataclass(frozen=True)
class Services:
    home: Path
    account: aws.Aws
    board: jobboard.JobBoard
    outbox: outbox.Outbox

    def environment_file(self) -> Path:
        """The function's variables as `--env-vars` takes them: for all functions, where their templates name them."""
        variables = {
            "DATABASE_URL": _from_container(self.board.url),
            "PGSSLMODE": "prefer",
            "MAIL_FROM": cloud.MAIL_FROM,
            # SAM gives a reference to a resource as that resource's name in the template, which is no queue's URL and
            # no configuration set.
            "DEAD_LETTER_QUEUE_URL": "",
            "SES_CONFIGURATION_SET": "",
            "AWS_ENDPOINT_URL_SESV2": _from_container(self.outbox.url),
        }
        file = self.home / "env.json"
        file.write_text(json.dumps({"Parameters": variables}))
        return file

    def ledger(self) -> dict[str, str]:
        """The outcome of each key."""
        rows = self.board.rows("SELECT event_id, outcome FROM processed_events")
        return {row["event_id"]: row["outcome"] for row in rows}

    def feedback(self) -> list[tuple[str, str]]:
        """What SES said: key and kind."""
        rows = self.board.rows("SELECT event_id, kind FROM email_feedback ORDER BY id")
        return [(row["event_id"], row["kind"]) for row in rows]


def _from_container(url: str) -> str:
    return url.replace("127.0.0.1", HOST)


@contextmanager
def running() -> Iterator[Services]:
    """Postgres with the job board, SES with a sender, and the doorway to them, for the length of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="onemail-sam-local-") as home,
        postgres.running() as server,
        aws.running(Path(home)) as account,
        outbox.running(account.endpoint) as letters,
    ):
        account.client("sesv2").create_email_identity(EmailIdentity=cloud.IDENTITY)
        board = jobboard.create(server)
        with doorway.opened(port for url in (board.url, letters.url) if (port := urlsplit(url).port)):
            yield Services(Path(home), account, board, letters)
