"""`make demo`: the whole of it on this machine, once, with emails to look at afterwards."""

from __future__ import annotations

import argparse
import collections
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import child
import cloud
import endings
import messages
import postgres
import stack

INBOX = stack.ROOT / ".local" / "inbox.html"
BATCH_EVENTS = 250
BATCH_REPEATS = 50
STATUSES = ("reviewing", "interview", "offer", "rejected", "hired", "on_hold")
# The job board's fixture has applications 1 to 40.
APPLICATIONS = 40
PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Scene:
    what: str
    bodies: list[str]
    emails: int


def scenes() -> list[Scene]:
    twice = new_status_change(7, "interview")
    batch = [
        new_status_change(1 + number % APPLICATIONS, STATUSES[number // APPLICATIONS % len(STATUSES)])
        for number in range(BATCH_EVENTS)
    ]
    return [
        Scene("a status change", [new_status_change(3, "interview")], 1),
        Scene("one event in two messages", [twice, twice], 1),
        Scene("a change to an application that was deleted meanwhile", [new_status_change(9999, "offer")], 0),
        Scene("an order", [messages.order_placed(1001)], 1),
        Scene("a poison message, which is no event", ["this is no event"], 0),
        Scene(
            f"a batch: {BATCH_EVENTS} events, {BATCH_REPEATS} of them twice",
            batch + batch[:BATCH_REPEATS],
            BATCH_EVENTS,
        ),
    ]


def new_status_change(application: int, status: str) -> str:
    return messages.status_change(str(uuid.uuid4()), application, status)


def play(here: cloud.Cloud, acts: Sequence[Scene]) -> dict[str, str]:
    """Puts all messages on the queue; gives their bodies by message id."""
    bodies: dict[str, str] = {}
    print("\nOn the queue:")
    for scene in acts:
        bodies |= zip(here.send(*scene.bodies), scene.bodies, strict=True)
        print(f"{len(scene.bodies):5}  {scene.what}", flush=True)
    return bodies


def watch(here: cloud.Cloud) -> None:
    """Shows progress until the queue is empty and SES has said of each email what became of it."""
    # On a terminal one line that changes, elsewhere a line for each change, but not too many.
    period, start, end = (0.1, "\r", "  ") if sys.stdout.isatty() else (1.0, "", "\n")
    began = time.monotonic()
    shown_at, shown = -period, ""
    print()
    while True:
        # In this order: what the queue holds no more has been told to SES by then.
        waiting, unrecorded = here.waiting(), here.unrecorded()
        done = waiting == unrecorded == 0
        seconds = time.monotonic() - began
        emails = len(here.outbox.emails())
        state = f"{emails} emails sent, {waiting} messages on the queue, {unrecorded} notifications from SES to record"
        if done or (state != shown and seconds - shown_at >= period):
            shown_at, shown = seconds, state
            print(f"{start}{seconds:5.1f} s  {state}", end=end, flush=True)
        if done or seconds > PATIENCE_SECONDS:
            break
        time.sleep(0.1)
    if start:
        print()


def tell(here: cloud.Cloud, ended: Sequence[endings.Ending], began: datetime) -> None:
    """Says in a few lines what happened."""
    emails = here.outbox.emails()
    seconds = (emails[-1].accepted_at - began).total_seconds() if emails else 0
    counted = endings.count(ended)
    print(f"\n{len(ended)} messages became {len(emails)} emails in {seconds:.1f} s. The others:")
    print(f"{counted['duplicate']:5}  duplicates: each event is claimed once")
    print(f"{counted['skipped']:5}  skipped: the application is gone, so there is nobody to write to")
    troubles = collections.Counter((ending.title.lower(), ending.why) for ending in ended if ending.is_trouble)
    for (title, why), count in troubles.most_common(5):
        print(f"{count:5}  {title}: {why}")
    print(f"\nSES confirmed {confirmed(here)} of {len(emails)}: had a worker died, this would complete its claim.")
    print(f"Look at the emails: {INBOX}")


def confirmed(here: cloud.Cloud) -> int:
    """How many emails SES has said that it took."""
    said = endings.said_by_ses(here)
    return sum("send" in said.get(email.message_id, []) for email in here.outbox.emails())


def is_right(here: cloud.Cloud, acts: Sequence[Scene]) -> bool:
    """Whether each event that should have an email has one, none has two, and SES has confirmed all."""
    sent = [email.tags.get("event_id") or email.tags.get("event_id_b64") for email in here.outbox.emails()]
    expected = sum(scene.emails for scene in acts)
    twice = len(sent) - len(set(sent))
    unconfirmed = len(sent) - confirmed(here)
    if len(sent) == expected and twice == unconfirmed == 0:
        return True
    print(f"\nThat is wrong: there should be {expected} emails; {twice} are second ones, {unconfirmed} unconfirmed.")
    return False


def keep(here: cloud.Cloud, bodies: dict[str, str]) -> None:
    """Leaves everything running, and the inbox up to date, until Ctrl-C."""
    print(f"\n{cloud.description(here)}\nThe inbox page follows: reload it. Running until Ctrl-C.", flush=True)
    written = so_far(here)
    while True:
        time.sleep(1)
        if so_far(here) != written:
            written = so_far(here)
            endings.write_inbox(INBOX, here, endings.of(here, bodies))


def so_far(here: cloud.Cloud) -> tuple[int, int]:
    """How many emails there are, and how many things that SES said of them."""
    return len(here.outbox.emails()), sum(map(len, endings.said_by_ses(here).values()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Deploys onto a local AWS, sends events, shows the emails.")
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C")
    arguments = parser.parse_args()
    child.leave_in_order()
    acts = scenes()
    try:
        with cloud.running(progress=lambda text: print(text, flush=True)) as here:
            began = datetime.now(timezone.utc)
            bodies = play(here, acts)
            watch(here)
            ended = endings.of(here, bodies)
            endings.write_inbox(INBOX, here, ended)
            tell(here, ended, began)
            right = is_right(here, acts)
            if arguments.keep:
                keep(here, bodies)
            return 0 if right else 1
    except (child.Failed, postgres.PostgresError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
