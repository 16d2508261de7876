"""SES's notifications: for each email that it accepts it publishes `Send`, and a little later `Delivery`.

The stand-in keeps a configuration set's event destinations and publishes nothing to them. This does, to whatever
topics the set names at that moment, so that what the template says of them is tried too.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import notifications
from aws import Aws
from outbox import Email

DELIVERY_MILLISECONDS = 400
# SNS takes no more in one request.
PUBLISH_BATCH = 10


class _Due(NamedTuple):
    """A notification and when it is to be published; the number keeps their order, and them from being compared."""

    at: float
    number: int
    configuration_set: str
    notification: notifications.Notification


class Publisher:
    """What SES has still to say, and whether it says it."""

    def __init__(self, aws: Aws) -> None:
        # Made here, since boto3 can't make two at once, and the thread only uses them.
        self._ses = aws.client("sesv2")
        self._sns = aws.client("sns")
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._waiting: list[_Due] = []
        self._publishing = 0
        self._held = False
        self._stopping = False

    def tell(self, sent: Email) -> None:
        """Says of an email what SES would. Without a configuration set it says nothing."""
        if not sent.configuration_set:
            return
        now = time.monotonic()
        delivery = notifications.delivery(sent, DELIVERY_MILLISECONDS)
        with self._changed:
            for delay, notification in ((0, notifications.send(sent)), (DELIVERY_MILLISECONDS / 1000, delivery)):
                due = _Due(now + delay, next(self._numbers), sent.configuration_set, notification)
                heapq.heappush(self._waiting, due)
            self._changed.notify()

    def untold(self) -> int:
        """How many notifications aren't published yet."""
        with self._changed:
            return len(self._waiting) + self._publishing

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nothing is published for the length of the block, and all of it afterwards."""
        self._hold(True)
        try:
            yield
        finally:
            self._hold(False)

    def _hold(self, held: bool) -> None:
        with self._changed:
            self._held = held
            self._changed.notify()

    def _run(self) -> None:
        while due := self._take():
            try:
                self._publish(due)
            except Exception:
                # Whoever waits for these notifications will say that they did not come; this says why.
                traceback.print_exc()
            with self._changed:
                self._publishing = 0

    def _take(self) -> list[_Due]:
        """Waits for what is due; nothing when it is time to stop."""
        with self._changed:
            while True:
                if self._stopping:
                    return []
                first = self._waiting[0].at if self._waiting and not self._held else None
                now = time.monotonic()
                if first is not None and first <= now:
                    break
                self._changed.wait(None if first is None else first - now)
            due = []
            while self._waiting and self._waiting[0].at <= now:
                due.append(heapq.heappop(self._waiting))
            self._publishing = len(due)
            return due

    def _publish(self, due: Iterable[_Due]) -> None:
        by_set: dict[str, list[notifications.Notification]] = {}
        for each in due:
            by_set.setdefault(each.configuration_set, []).append(each.notification)
        for name, told in by_set.items():
            answer = self._ses.get_configuration_set_event_destinations(ConfigurationSetName=name)
            for destination in answer["EventDestinations"]:
                self._publish_to(destination, told)

    def _publish_to(self, destination: dict[str, Any], told: Iterable[notifications.Notification]) -> None:
        if not destination["Enabled"] or "SnsDestination" not in destination:
            return
        kinds = destination["MatchingEventTypes"]
        # `Delivery` in a notification is `DELIVERY` here.
        matching = [json.dumps(each) for each in told if each["eventType"].upper() in kinds]
        for start in range(0, len(matching), PUBLISH_BATCH):
            batch = matching[start : start + PUBLISH_BATCH]
            entries = [{"Id": str(number), "Message": message} for number, message in enumerate(batch)]
            self._sns.publish_batch(
                TopicArn=destination["SnsDestination"]["TopicArn"], PublishBatchRequestEntries=entries
            )

    def _stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()


@contextlib.contextmanager
def running(aws: Aws) -> Iterator[Publisher]:
    """Publishes for the length of the block."""
    publisher = Publisher(aws)
    thread = threading.Thread(target=publisher._run, name="publisher", daemon=True)
    thread.start()
    try:
        yield publisher
    finally:
        publisher._stop()
        thread.join()
