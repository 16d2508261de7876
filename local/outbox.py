"""The door to SES: every email that a function sends passes here on its way to the AWS stand-in.

The stand-in keeps an email's addresses, subject and bodies, and drops the rest. This keeps the request whole, so
that headers, tags and Reply-To can be looked at too. It can also refuse, as SES does on a bad day, and lose a reply,
as networks do.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import sys
import threading
import traceback
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

SEND_EMAIL = "/v2/email/outbound-emails"
# These belong to one connection, and there are two. Not so `Host`, which the request's signature covers.
NOT_PASSED_ON = {"connection", "content-length", "expect", "transfer-encoding"}


@dataclass(frozen=True)
class Email:
    """An email that SES accepted, as the function asked for it."""

    message_id: str
    accepted_at: datetime
    request: dict[str, Any]

    @property
    def to(self) -> list[str]:
        addresses: list[str] = self.request["Destination"]["ToAddresses"]
        return addresses

    @property
    def subject(self) -> str:
        subject: str = self.request["Content"]["Simple"]["Subject"]["Data"]
        return subject

    @property
    def tags(self) -> dict[str, str]:
        return {tag["Name"]: tag["Value"] for tag in self.request.get("EmailTags", [])}

    @property
    def configuration_set(self) -> str | None:
        name: str | None = self.request.get("ConfigurationSetName")
        return name


def _tell_nobody(_: Email) -> None:
    pass


class Outbox:
    """What SES has accepted so far, and what is to go wrong."""

    def __init__(self, tell: Callable[[Email], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._emails: list[Email] = []
        self._refusals = 0
        self._refusal = ""
        self._lost_replies = 0
        self.url = ""

    def emails(self) -> list[Email]:
        with self._lock:
            return list(self._emails)

    def refuse(self, count: int, error: str = "SendingPausedException") -> None:
        """The next `count` emails are refused, by default as when an operator has paused the account's sending."""
        with self._lock:
            self._refusals = count
            self._refusal = error

    def lose_replies(self, count: int) -> None:
        """Of the next `count` emails that SES accepts, the function never learns it."""
        with self._lock:
            self._lost_replies = count

    def _takes_refusal(self) -> str | None:
        """The error of the refusal, if there is one."""
        with self._lock:
            self._refusals -= 1
            return self._refusal if self._refusals >= 0 else None

    def _loses_reply(self) -> bool:
        with self._lock:
            self._lost_replies -= 1
            return self._lost_replies >= 0

    def _keep(self, request: dict[str, Any], message_id: str) -> None:
        email = Email(message_id, datetime.now(timezone.utc), request)
        with self._lock:
            self._emails.append(email)
        self._tell(email)


@contextlib.contextmanager
def running(endpoint: str, tell: Callable[[Email], None] = _tell_nobody) -> Iterator[Outbox]:
    """Opens the door for the length of the block.

    `endpoint` is the AWS stand-in behind it; `tell` is called with each email before the function gets its answer.
    """
    outbox = Outbox(tell)
    server = _Server(("127.0.0.1", 0), _door(outbox, urllib.parse.urlsplit(endpoint).netloc))
    outbox.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, name="outbox", daemon=True)
    thread.start()
    try:
        yield outbox
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A function, or what is behind the door, may be stopped in the middle of a request: that is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            traceback.print_exc()


def _door(outbox: Outbox, behind: str) -> type[http.server.BaseHTTPRequestHandler]:
    class Door(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            sends = self.command == "POST" and self.path == SEND_EMAIL
            if sends and (refusal := outbox._takes_refusal()):
                self._answer(400, refusal, b'{"message":"Refused by the local cloud."}')
                return
            status, kind, answer = _ask(behind, self.command, self.path, dict(self.headers), body)
            if sends and status == 200:
                outbox._keep(json.loads(body), json.loads(answer)["MessageId"])
                if outbox._loses_reply():
                    self.close_connection = True
                    return
            self._answer(status, kind, answer)

        do_GET = do_POST = do_PUT = do_DELETE = _pass

        def _answer(self, status: int, error: str | None, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if error:
                self.send_header("x-amzn-errortype", error)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the functions log their sends themselves."""

    return Door


def _ask(behind: str, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection(behind, timeout=30)
    try:
        passed_on = {name: value for name, value in headers.items() if name.lower() not in NOT_PASSED_ON}
        connection.request(method, path, body, passed_on)
        response = connection.getresponse()
        return response.status, response.getheader("x-amzn-errortype"), response.read()
    finally:
        connection.close()
