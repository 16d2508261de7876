"""What the checks of the end-to-end test ask and wait for."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import messages
from cloud import Cloud
from outbox import Email

# Far more than anything takes here: only a broken run waits this long.
PATIENCE_SECONDS = 180
# When a message comes back after its first failure, less up to a quarter by chance.
FIRST_DELAY_SECONDS = 30


def send_status_change(here: Cloud, application: int, status: str) -> str:
    """Puts the event on the queue, and gives its id."""
    event_id = str(uuid.uuid4())
    here.send(messages.status_change(event_id, application, status))
    return event_id


def emails_of(here: Cloud, event_id: str) -> list[Email]:
    return [email for email in here.outbox.emails() if email.tags.get("event_id") == event_id]


def rows_of(here: Cloud, event_id: str) -> list[dict[str, Any]]:
    return here.board.rows(f"SELECT * FROM processed_events WHERE event_id = '{event_id}'")


def feedback_of(here: Cloud, event_id: str) -> list[dict[str, Any]]:
    """What SES said of the event's emails, in the order in which it happened."""
    return here.board.rows(f"SELECT * FROM email_feedback WHERE event_id = '{event_id}' ORDER BY occurred_at, id")


def comes_back_in(message: dict[str, Any]) -> float:
    """The seconds until SQS hands out again a message that is in work."""
    visible_at: float = message["VisibleAt"]
    return visible_at - time.time()


def outcomes_of(here: Cloud, *message_ids: str) -> list[str]:
    """What the lines that `notify` logged of these messages say."""
    return [line["outcome"] for line in here.log_lines() if line.get("message_id") in message_ids and "outcome" in line]


def emptied(here: Cloud) -> None:
    until(lambda: here.waiting() == 0, "the queue is empty")


def recorded(here: Cloud) -> None:
    until(lambda: here.unrecorded() == 0, "all that SES said is recorded")


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE_SECONDS} s: {what}")
        time.sleep(0.05)


def only(found: list[Any]) -> Any:
    equal(len(found), 1)
    return found[0]


def between(least: float, seen: float, most: float) -> None:
    if not least <= seen <= most:
        raise AssertionError(f"expected {least} to {most}, saw {seen}")


def equal(seen: object, expected: object) -> None:
    if seen != expected:
        raise AssertionError(f"expected {expected!r}, saw {seen!r}")
