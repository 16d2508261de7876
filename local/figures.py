"""Measures the release binary as Lambda would run it: its size, its start, and its memory after 1,000 emails.

    .venv/bin/python local/figures.py    # or `make figures`

Lambda and SES are stand-ins in this process, so the times are of the binary and of Postgres alone.
"""

from __future__ import annotations

import json
import os
import queue
import re
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import child
import jobboard
import postgres

ROOT = Path(__file__).resolve().parent.parent
BINARY = ROOT / "target" / "lambda" / "onemail" / "bootstrap"
STARTS = 21
EMAILS = 1000
BATCH = 10
DEADLINE_SECONDS = 60
PATIENCE_SECONDS = 60


class Lambda(ThreadingHTTPServer):
    """Lambda's Runtime API, for one function at a time."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), RuntimeApi)
        self.asked: queue.Queue[float] = queue.Queue()
        self.events: queue.Queue[Any] = queue.Queue()
        self.answers: queue.Queue[tuple[str, Any]] = queue.Queue()

    def handle_error(self, *_: Any) -> None:
        """A function that was killed leaves its connection; that is no error."""

    def invoke(self, event: Any) -> Any:
        self.events.put(event)
        kind, answer = self.answers.get(timeout=PATIENCE_SECONDS)
        if kind != "response":
            raise child.Failed(f"the function failed: {answer}")
        return answer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


class RuntimeApi(Handler):
    server: Lambda

    def do_GET(self) -> None:
        self.server.asked.put(time.monotonic())
        event = self.server.events.get()
        if event is None:
            return
        deadline = int((time.time() + DEADLINE_SECONDS) * 1000)
        self.answer(
            200,
            event,
            {
                "Lambda-Runtime-Aws-Request-Id": str(uuid.uuid4()),
                "Lambda-Runtime-Deadline-Ms": str(deadline),
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:123456789012:function:onemail",
            },
        )

    def do_POST(self) -> None:
        kind = self.path.rsplit("/", 1)[-1]
        self.server.answers.put((kind, self.body()))
        self.answer(202, {"status": "OK"})


class Ses(Handler):
    def do_POST(self) -> None:
        self.body()
        self.answer(200, {"MessageId": str(uuid.uuid4())})


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[int]:
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def environment(board: jobboard.JobBoard, lambda_port: int, ses_port: int) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "_HANDLER": "notify",
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{lambda_port}",
        "AWS_LAMBDA_FUNCTION_NAME": "onemail",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        "AWS_LAMBDA_LOG_LEVEL": "ERROR",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ses_port}",
        "DATABASE_URL": board.url,
        "MAIL_FROM": "Job Board <no-reply@example.com>",
    }


def build() -> None:
    programs = str(Path(sys.executable).parent)
    child.run(
        ["cargo", "lambda", "build", "--release", "--bin", "onemail"],
        log=None,
        environment={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        directory=ROOT,
    )


def start_times(variables: dict[str, str], api: Lambda) -> list[float]:
    """Milliseconds from the start of the process to its first request for work."""
    times = []
    for _ in range(STARTS):
        started = time.monotonic()
        process = subprocess.Popen([BINARY], env=variables, stdout=subprocess.DEVNULL)
        try:
            times.append((api.asked.get(timeout=PATIENCE_SECONDS) - started) * 1000)
        finally:
            process.kill()
            process.wait()
            # Lets go of the connection that waits for work.
            api.events.put(None)
    return times


def memory_after(emails: int, variables: dict[str, str], api: Lambda) -> tuple[dict[str, int], list[float]]:
    """What /proc says of the process then, in kB, and milliseconds for each batch."""
    process = subprocess.Popen([BINARY], env=variables, stdout=subprocess.DEVNULL)
    try:
        times = []
        for first in range(0, emails, BATCH):
            batch = {"Records": [record(first + number) for number in range(BATCH)]}
            started = time.monotonic()
            answer = api.invoke(batch)
            times.append((time.monotonic() - started) * 1000)
            if answer["batchItemFailures"]:
                raise child.Failed(f"emails failed: {answer}")
        status = Path(f"/proc/{process.pid}/status").read_text()
        return {name: int(kilobytes) for name, kilobytes in re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status)}, times
    finally:
        process.kill()
        process.wait()
        api.events.put(None)


def record(number: int) -> dict[str, Any]:
    event = {
        "type": "application.status_changed",
        "event_id": f"figure-{number}",
        "application_id": 1 + number % 40,
        "old_status": "reviewing",
        "new_status": "interview",
    }
    return {"messageId": f"m-{number}", "body": json.dumps(event)}


def migrate(variables: dict[str, str]) -> None:
    by_hand = {name: value for name, value in variables.items() if name != "AWS_LAMBDA_RUNTIME_API"}
    subprocess.run([BINARY, "migrate", "-"], input=b"{}", env=by_hand, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    child.leave_in_order()
    build()
    api = Lambda()
    ses = ThreadingHTTPServer(("127.0.0.1", 0), Ses)
    with postgres.running() as server, serving(api) as lambda_port, serving(ses) as ses_port:
        variables = environment(jobboard.create(server), lambda_port, ses_port)
        migrate(variables)
        starts = start_times(variables, api)
        memory, batches = memory_after(EMAILS, variables, api)
    print(f"size of the binary: {BINARY.stat().st_size / 1e6:.1f} MB")
    print(
        f"start to first request for work: median {statistics.median(starts):.0f} ms, "
        f"worst {max(starts):.0f} ms of {len(starts)}"
    )
    print(f"memory after {EMAILS} emails: {memory['VmRSS'] / 1e3:.0f} MB, at most {memory['VmHWM'] / 1e3:.0f} MB")
    print(f"a batch of {BATCH}: median {statistics.median(batches):.0f} ms, first {batches[0]:.0f} ms")


if __name__ == "__main__":
    main()
