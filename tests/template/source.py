"""What the source does: the metrics it emits, by function, and the AWS actions it calls."""

from __future__ import annotations

import re

from deployed import ROOT

SOURCE = ROOT / "src"
# Where each function's counting is done: sending is notify's.
PARTS = {"notify": ["notify", "send"], "feedback": ["feedback"], "cleanup": ["cleanup"]}
# Counted by reason too, as a second metric with that dimension.
BY_REASON = {"Released", "Refused"}
# The SDK's calls, as IAM names them. A batch is checked as its single action.
CALLS = {
    "send_email": "ses:SendEmail",
    "send_message": "sqs:SendMessage",
    "get_queue_url": "sqs:GetQueueUrl",
    "change_message_visibility": "sqs:ChangeMessageVisibility",
    "change_message_visibility_batch": "sqs:ChangeMessageVisibility",
    "get_secret_value": "secretsmanager:GetSecretValue",
}
# The SDKs that CALLS knows all calls of.
SDKS = {"aws_sdk_sesv2", "aws_sdk_sqs", "aws_sdk_secretsmanager"}


def counts() -> set[str]:
    """The names of all counts; what else there is, is a time."""
    text = (SOURCE / "metrics.rs").read_text()
    return set(re.findall(r'Self::\w+ => "(\w+)"', text[text.index("impl Count") : text.index("impl Time")]))


def endings() -> set[str]:
    """What `notify` counts of an event when it is done with it, whichever way it went."""
    text = (SOURCE / "notify" / "line.rs").read_text()
    return set(re.findall(r"\bCount::(\w+)", text[text.index("fn write") :]))


def metrics_of(function: str) -> set[str]:
    """The names of what `notify`, `feedback` or `cleanup` counts and times."""
    names = dict(re.findall(r'Self::(\w+) => "(\w+)"', (SOURCE / "metrics.rs").read_text()))
    parts = PARTS[function]
    text = "".join(path.read_text() for part in parts for path in (SOURCE / part).rglob("*.rs"))
    return {names[variant] for variant in re.findall(r"\b(?:Count|Time)::(\w+)", text) if variant in names}


def connections(function: str) -> int:
    """How many connections to the database one copy of the function opens at the most."""
    text = (SOURCE / function / "mod.rs").read_text()
    (most,) = re.findall(r"Connections::new\([^,]+, (\w+)\)", text)
    if not most.isdigit():
        (most,) = re.findall(rf"const {most}: usize = (\d+);", text)
    return int(most)


def tells_of() -> set[str]:
    """What SES can tell of an email that `feedback` knows, as an event destination names it."""
    names = re.findall(r'event_type: "([\w ]+)"', (SOURCE / "feedback" / "kind.rs").read_text())
    return {name[0].lower() + name[1:].replace(" ", "") for name in names}


def reasons() -> set[str]:
    """The words for why an event was refused or released."""
    text = (SOURCE / "notify" / "outcome.rs").read_text()
    words = re.findall(r'=> "([a-z_]+)"', text[text.index("impl Refusal") :])
    return set(words)


def actions() -> set[str]:
    """What the source asks AWS to do."""
    text = "".join(path.read_text() for path in SOURCE.rglob("*.rs"))
    unknown = set(re.findall(r"\baws_sdk_\w+", text)) - SDKS
    if unknown:
        raise AssertionError(f"CALLS does not know what {unknown} calls")
    return {action for call, action in CALLS.items() if re.search(rf"\.{call}\(", text)}
