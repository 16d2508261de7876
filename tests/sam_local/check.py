#!/usr/bin/env python3
"""Checks that `sam local invoke` works, as the README says, for every file in events/.

    bash tests/sam_local.sh

Each event is given to the built function in SAM's container, beside a real Postgres and the AWS stand-in on this
machine's loopback. Prints `ok - ...` or `not ok - ...` for each check. Where no Docker engine runs it starts one,
with a stand-in for Lambda's image, for as long as this takes; where it can't, it says so and exits with 77.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EVENTS = ROOT / "events"
sys.path.insert(0, str(ROOT / "local"))

import aws
import base_image
import child
import engine
import postgres
import sealed
import services
import stack
from sam import Sam

SKIPPED = 77
SEALED = "--sealed"
# Before the others, which need its tables.
MIGRATION = "migrate.json"
# What becomes of each record of each file, in the ledger's words; one that is refused is reported and leaves nothing.
REFUSED = "refused"
EXPECTED = {
    "deleted_application.json": ["skipped"],
    "duplicate.json": ["sent", "sent"],
    "from_eventbridge.json": ["sent"],
    "from_sns.json": ["sent"],
    "order_placed.json": ["sent"],
    "poison.json": [REFUSED, "sent"],
    "status_changed.json": ["sent"],
}
# What each file tells of an email, and whether that completes its claim, which no worker has made.
TOLD = {
    "feedback_bounce.json": ("bounce", False),
    "feedback_send.json": ("send", True),
}


def main() -> int:
    child.leave_in_order()
    aws.forget_real_accounts()
    try:
        if sys.argv[1:2] == [SEALED]:
            return _check_with_own_engine(Path(sys.argv[2]))
        return _check()
    except engine.Unavailable as reason:
        print(f"SKIPPED: sam local invoke (no Docker engine: {reason})")
        return SKIPPED
    except (child.Failed, postgres.PostgresError) as error:
        print(f"not ok - sam local invoke: {error}")
        return 1


def _check() -> int:
    client = engine.running()
    usable = client is not None and base_image.is_had(client)
    if not usable:
        engine.install(need="none is running" if client is None else "the one that runs can't get Lambda's image")
        if not sealed.is_allowed():
            raise engine.Unavailable("none can be started without the privileges to make namespaces")
    with tempfile.TemporaryDirectory(prefix="onemail-sam-local-") as home:
        template = stack.build(Path(home))
        if usable:
            return _check_every_event(template)
        return sealed.run([sys.executable, __file__, SEALED, str(template)])


def _check_with_own_engine(template: Path) -> int:
    sealed.furnish()
    with engine.started() as client:
        base_image.stand_in(client, _bootstrap(template))
        return _check_every_event(template)


def _bootstrap(template: Path) -> Path:
    """The built binary, which is the same in each function's folder."""
    return next(template.parent.glob("*/bootstrap"))


def _check_every_event(template: Path) -> int:
    checks = Checks()
    found = sorted(path.name for path in EVENTS.glob("*.json"))
    checks.equal("every file in events/ is known here", found, sorted([MIGRATION, *EXPECTED, *TOLD]))
    glibc = base_image.glibc_wanted(_bootstrap(template))
    checks.equal("the binary asks for no newer C library than Lambda's", glibc <= base_image.GLIBC, True)
    with services.running() as here:
        sam = Sam(template, here)
        _check_migration(sam, checks)
        for name in EXPECTED:
            _check_event(EVENTS / name, sam, here, checks)
        for name in TOLD:
            _check_notification(EVENTS / name, sam, here, checks)
    return 1 if checks.failed else 0


class Checks:
    def __init__(self) -> None:
        self.failed = 0

    def equal(self, name: str, got: object, wanted: object) -> None:
        if got == wanted:
            print(f"ok - sam local invoke: {name}", flush=True)
        else:
            self.failed += 1
            print(f"not ok - sam local invoke: {name}\n  wanted {wanted}\n  got    {got}", flush=True)

    @contextmanager
    def explained_by(self, log: Path) -> Iterator[None]:
        """Shows the log after checks of which some failed."""
        failed = self.failed
        yield
        if self.failed > failed:
            print("".join(f"  | {line}\n" for line in log.read_text(errors="replace").splitlines()), flush=True)


def _check_migration(sam: Sam, checks: Checks) -> None:
    newest = max(int(path.name[1:].split("__")[0]) for path in ROOT.glob("migrations/V*__*.sql"))
    with checks.explained_by(sam.log):
        answer = sam.invoke("MigrateFunction", EVENTS / MIGRATION)
        version = answer.get("schema_version") if isinstance(answer, dict) else answer
        checks.equal(f"{MIGRATION}: version of the tables: {newest}", version, newest)


def _check_event(event: Path, sam: Sam, here: services.Services, checks: Checks) -> None:
    records = json.loads(event.read_text())["Records"]
    outcomes = list(zip(records, EXPECTED[event.name], strict=True))
    refused = [{"itemIdentifier": record["messageId"]} for record, outcome in outcomes if outcome == REFUSED]
    settled = {_key(record): outcome for record, outcome in outcomes if outcome != REFUSED}
    sent = [key for key, outcome in settled.items() if outcome == "sent"]
    ledger, emails = here.ledger(), len(here.outbox.emails())

    with checks.explained_by(sam.log):
        answer = sam.invoke("NotifyFunction", event)

        checks.equal(f"{event.name}: failures reported: {len(refused)}", answer, {"batchItemFailures": refused})
        added = {key: outcome for key, outcome in here.ledger().items() if key not in ledger}
        checks.equal(f"{event.name}: rows in the ledger: {', '.join(settled.values())}", added, settled)
        keys = [email.tags.get("event_id") for email in here.outbox.emails()[emails:]]
        checks.equal(f"{event.name}: emails sent: {len(sent)}", keys, sent)


def _check_notification(event: Path, sam: Sam, here: services.Services, checks: Checks) -> None:
    kind, completes = TOLD[event.name]
    [record] = json.loads(event.read_text())["Records"]
    [key] = json.loads(record["body"])["mail"]["tags"]["event_id"]
    ledger, feedback = here.ledger(), here.feedback()

    with checks.explained_by(sam.log):
        answer = sam.invoke("FeedbackFunction", event)

        checks.equal(f"{event.name}: failures reported: 0", answer, {"batchItemFailures": []})
        checks.equal(f"{event.name}: recorded: {kind}", here.feedback()[len(feedback) :], [(key, kind)])
        added = {each: outcome for each, outcome in here.ledger().items() if each not in ledger}
        completed = {key: "sent"} if completes else {}
        checks.equal(f"{event.name}: claims completed: {len(completed)}", added, completed)


def _key(record: dict[str, Any]) -> str:
    """The idempotency key of the event in a record, whatever it is wrapped in."""
    event = json.loads(record["body"])
    event = json.loads(event["Message"]) if "Message" in event else event.get("detail", event)
    return event.get("event_id") or f"order-{event['order_id']}"


if __name__ == "__main__":
    sys.exit(main())
