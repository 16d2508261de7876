"""The inbox page: one HTML file in which every email that was sent can be looked at, and what became no email."""

from __future__ import annotations

import email.header
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outbox import Email

PAGE = Path(__file__).with_name("inbox.html")
EMPTY_DATA = '<script id="data" type="application/json">{}</script>'


@dataclass(frozen=True)
class Unsent:
    """A message that led to no email, and why."""

    title: str
    why: str
    body: str
    # Somebody has to look at it.
    bad: bool


def write(
    path: Path,
    emails: Sequence[Email],
    said: Mapping[str, Sequence[str]],
    unsent: Sequence[Unsent],
    summary: Sequence[tuple[int, str]],
) -> None:
    """Writes the page; `said` is what SES said of the emails, by its message ids."""
    data = {
        "summary": summary,
        "emails": [_email(each, said.get(each.message_id, [])) for each in emails],
        "others": [asdict(each) for each in unsent],
    }
    # Within a script element only "<" could end it, or begin a comment.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    page = PAGE.read_text().replace(EMPTY_DATA, EMPTY_DATA.replace("{}", text))
    path.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place, so that a browser never reads half a page.
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(page, encoding="utf-8")
    draft.replace(path)


def _email(sent: Email, said: Sequence[str]) -> dict[str, Any]:
    request = sent.request
    simple = request["Content"]["Simple"]
    addresses = [("From", request["FromEmailAddress"]), *(("To", address) for address in sent.to)]
    addresses += [("Reply-To", address) for address in request.get("ReplyToAddresses", [])]
    # Tags can hold no dot.
    event_type = sent.tags.get("event_type", "").replace("-", ".")
    return {
        "subject": sent.subject,
        "to": [_readable(address) for address in sent.to],
        # Of what SES said, the last.
        "what": " · ".join([event_type, f"{sent.accepted_at.astimezone():%H:%M:%S}", *said[-1:]]),
        "addresses": [(name, _readable(address)) for name, address in addresses],
        "html": simple["Body"]["Html"]["Data"],
        "text": simple["Body"]["Text"]["Data"],
        "tags": list(sent.tags.items()),
        "headers": addresses + [(header["Name"], header["Value"]) for header in simple.get("Headers", [])],
        "ses": [
            ("Message id", sent.message_id),
            ("Accepted", sent.accepted_at.isoformat(timespec="milliseconds")),
            ("Configuration set", sent.configuration_set or "none"),
            ("SES said", ", ".join(said) or "nothing yet"),
        ],
    }


def _readable(address: str) -> str:
    """An address as a mail program shows it: encoded words (RFC 2047) decoded."""
    return str(email.header.make_header(email.header.decode_header(address)))
