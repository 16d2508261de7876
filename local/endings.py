"""How each message ended, and what SES said of each email: from the functions' log, dead letters and ledger."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import inbox
from cloud import Cloud

TITLES = {"duplicate": "Duplicate", "skipped": "No recipient", "dead": "In the dead-letter queue"}
HARMLESS = ("sent", "duplicate", "skipped")


@dataclass(frozen=True)
class Ending:
    body: str
    # As the function's log has it, or `dead`, or `not logged`.
    outcome: str
    # The last line that the function logged about the message.
    line: Mapping[str, Any]

    @property
    def title(self) -> str:
        return TITLES.get(self.outcome, self.outcome.capitalize())

    @property
    def why(self) -> str:
        return self.line.get("cause") or self.line.get("message") or "the function logged nothing about it"

    @property
    def is_trouble(self) -> bool:
        """Whether somebody has to look at it."""
        return self.outcome not in HARMLESS


def of(here: Cloud, bodies: Mapping[str, str]) -> list[Ending]:
    """The endings of these messages, given as bodies by message id."""
    lines = {line["message_id"]: line for line in here.log_lines() if "outcome" in line and "message_id" in line}
    dead = {original_id(letter) for letter in here.dead_letters()}
    found = []
    for message_id, body in bodies.items():
        line = lines.get(message_id, {})
        outcome = "dead" if message_id in dead else line.get("outcome", "not logged")
        found.append(Ending(body, outcome, line))
    return found


def original_id(letter: Mapping[str, Any]) -> str:
    """The message id that a dead letter had: the redrive policy keeps it, the function's copy names it."""
    attribute = letter.get("MessageAttributes", {}).get("onemail_message_id", {})
    message_id: str = attribute.get("StringValue", letter["MessageId"])
    return message_id


def count(ended: Sequence[Ending]) -> collections.Counter[str]:
    return collections.Counter(ending.outcome for ending in ended)


def said_by_ses(here: Cloud) -> dict[str, list[str]]:
    """The kinds of what SES said of each email, by SES's message id, in the order in which it happened."""
    rows = here.board.rows("SELECT ses_message_id, kind FROM email_feedback ORDER BY occurred_at, id")
    kinds: dict[str, list[str]] = {}
    for row in rows:
        kinds.setdefault(row["ses_message_id"], []).append(row["kind"])
    return kinds


def write_inbox(path: Path, here: Cloud, ended: Sequence[Ending]) -> None:
    emails = here.outbox.emails()
    said = said_by_ses(here)
    counted = count(ended)
    summary = [
        (len(ended), "messages"),
        (len(emails), "emails"),
        (sum("send" in said.get(email.message_id, []) for email in emails), "confirmed by SES"),
        (counted["duplicate"], "duplicates skipped"),
        (counted["skipped"], "without a recipient"),
        (counted["dead"], "in the dead-letter queue"),
    ]
    if len(emails) > counted["sent"]:
        summary.append((len(emails) - counted["sent"], "sent for events of your own"))
    # What somebody has to look at comes first, and the many duplicates last.
    order = sorted(ended, key=lambda ending: (not ending.is_trouble, ending.outcome == "duplicate"))
    unsent = [
        inbox.Unsent(ending.title, ending.why, ending.body, ending.is_trouble)
        for ending in order
        if ending.outcome != "sent"
    ]
    inbox.write(path, emails, said, unsent, summary)
