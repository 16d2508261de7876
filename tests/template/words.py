"""Checks of the documents' words for the template's parts: what they name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from deployed import ROOT, SOURCE
from queues import equal

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Words in capitals that a reader has from elsewhere: the alarm that rang, and what the command before printed.
FROM_ELSEWHERE = {"ALARM_NAME", "RECEIPT_HANDLE", "TOPIC_ARN"}
# CloudWatch's dimensions.
DIMENSIONS = {"FunctionName", "ProxyName"}


def commands(document: Path) -> Iterator[str]:
    """The document's calls of the AWS CLI: lines of their own, with those that they go on in, and those within a line."""
    text = document.read_text()
    yield from re.findall(r"^ *(aws (?:.*\\\n)*.*)$", text, re.MULTILINE)
    yield from re.findall(r"`(aws [^`]+)`", text)


def in_capitals(name: str) -> str:
    """As the documents write an output: EVENTS_QUEUE_URL for EventsQueueUrl."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def what_a_command_has_in_capitals_is_an_output() -> None:
    known = {in_capitals(name) for name in SOURCE["Outputs"]} | FROM_ELSEWHERE
    seen: set[str] = set()
    for document in DOCUMENTS:
        for command in commands(document):
            words = set(re.findall(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b", command))
            equal((document.name, command, words - known), (document.name, command, set()))
            seen |= words
    equal(len(seen) > 10, True)


def what_the_documents_name_as_a_template_does_is_an_output_or_a_parameter() -> None:
    known = set(SOURCE["Outputs"]) | set(SOURCE["Parameters"]) | DIMENSIONS
    for document in DOCUMENTS:
        words = set(re.findall(r"`([A-Z][a-z]\w*(?:Url|Arn|Arns|Name|Id|Ids))`", document.read_text()))
        equal((document.name, words - known), (document.name, set()))


CHECKS = [
    what_a_command_has_in_capitals_is_an_output,
    what_the_documents_name_as_a_template_does_is_an_output_or_a_parameter,
]
