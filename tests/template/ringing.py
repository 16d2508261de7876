"""When each alarm rings, and why then."""

from __future__ import annotations

from dataclasses import dataclass

ABOVE = "GreaterThanThreshold"
FROM = "GreaterThanOrEqualToThreshold"


@dataclass(frozen=True)
class When:
    """A statistic of `period` seconds, in so many periods one after another, is `operator` the threshold."""

    operator: str
    threshold: float
    period: int
    periods: int
    because: str
    missing: str = "notBreaching"


def _one(because: str, period: int = 60, periods: int = 1) -> When:
    return When(ABOVE, 0, period, periods, because)


_DEAD = _one("each dead letter is somebody's missing email or record, and is deleted after 14 days")
_DIED = _one("no invocation dies as a whole by itself", 300)
_THROTTLED = _one("nothing throttles them but a limit that is too low", 300)
_FAILING = _one("one record that fails comes back and is no news; a quarter of an hour of them is", 300, 3)
_SETUP = _one("what does not pass by itself needs somebody at once")
_DECIDE = _one("each waits for a decision that only a person can make")
_REFUSED = _one("each is an email that is never sent unless somebody acts")

_BOUNCES = "SES may review an account from 5 % on, and pause it from 10 % on"
_COMPLAINTS = "SES may review an account from 0.1 % on, and pause it from 0.5 % on"
# SES tells its rates rarely.
_RATES = dict(operator=FROM, period=3600, periods=1, missing="ignore")

RINGS: dict[str, When] = {
    "EventsDeadLetters": _DEAD,
    "FeedbackDeadLetters": _DEAD,
    "SubscriptionDeadLetters": _DEAD,
    "CleanupDeadLetters": _DEAD,
    "EventsWaiting": When(ABOVE, 900, 60, 1, "an email that is a quarter of an hour late is noticed"),
    "FeedbackWaiting": When(ABOVE, 300, 60, 1, "within twice the time after which an event of a dead worker comes back"),
    "EventsFailing": _FAILING,
    "FeedbackFailing": _FAILING,
    "NotifyErrors": _DIED,
    "FeedbackErrors": _DIED,
    "NewVersionErrors": _one("a deployment goes on while nothing rings, a minute at a time"),
    "NotifyThrottles": _THROTTLED,
    "FeedbackThrottles": _THROTTLED,
    "NotifySlow": When(ABOVE, 24_000, 300, 3, "four fifths of the 30 s after which it is cut off"),
    "NotifySetupErrors": _SETUP,
    "FeedbackSetupErrors": _SETUP,
    "OutcomesUnknown": When(ABOVE, 2, 900, 1, "one or two are a network's hiccup"),
    "EventsHeld": _DECIDE,
    "RowsHeld": _DECIDE,
    "SecondEmails": _one("there should never be one"),
    "MalformedEvents": _REFUSED,
    "UnknownTypes": _REFUSED,
    "KeysReused": _REFUSED,
    "ImpossibleAddresses": _REFUSED,
    "ImpossibleData": _REFUSED,
    "MessagesRefused": _REFUSED,
    "BounceRate": When(threshold=0.05, because=_BOUNCES, **_RATES),
    "ComplaintRate": When(threshold=0.001, because=_COMPLAINTS, **_RATES),
    "AccountBounceRate": When(threshold=0.05, because=_BOUNCES, **_RATES),
    "AccountComplaintRate": When(threshold=0.001, because=_COMPLAINTS, **_RATES),
    "ProxyPinned": _one("what lasts for so long is no single statement", 60, 15),
}
