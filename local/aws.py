"""AWS on one loopback port: MiniStack, which runs the built functions as processes of this machine.

What it does not do is in local/README.md.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

import child
import ports

REGION = "us-east-1"
READY_SECONDS = 60

# Stands for credentials and opens nothing.
IDENTITY = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
}


@dataclass(frozen=True)
class Aws:
    endpoint: str
    log: Path

    def client(self, service: str) -> Any:
        return _client(self.endpoint, service)

    def messages_on(self, queue_url: str) -> list[dict[str, Any]]:
        """All messages of a queue, those in work included, as MiniStack shows them: looking does not touch them."""
        query = urllib.parse.urlencode({"QueueUrl": queue_url})
        with urllib.request.urlopen(f"{self.endpoint}/_ministack/sqs/messages?{query}", timeout=60) as answer:
            accounts = json.load(answer)["messages"]
        queues = [queue for account in accounts.values() for region in account.values() for queue in region.values()]
        return [message for queue in queues for message in queue]


@functools.cache
def _client(endpoint: str, service: str) -> Any:
    make: Any = boto3.client
    return make(service, endpoint_url=endpoint)


def forget_real_accounts() -> None:
    """Takes out of this process, and so of all that it starts, whatever could lead it to an AWS account."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        IDENTITY,
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
    )


@contextlib.contextmanager
def running(home: Path) -> Iterator[Aws]:
    """Runs MiniStack for the length of the block; what it writes stays in `home`."""
    log = home / "aws.log"
    with ports.reserved() as port, log.open("wb") as output:
        endpoint = f"http://127.0.0.1:{port}"
        with child.running(
            [Path(sys.executable).with_name("ministack")],
            output=output,
            environment=_environment(home, port, endpoint),
            directory=home,
        ) as process:
            if not _is_ready(process, endpoint):
                raise child.Failed(f"MiniStack did not start:\n{log.read_text()}")
            yield Aws(endpoint, log)


def _environment(home: Path, port: int, endpoint: str) -> dict[str, str]:
    """All that MiniStack gets; it hands it down to the functions, so nothing of ours may be among it."""
    return {
        **IDENTITY,
        "PATH": os.defpath,
        "HOME": str(home),
        "TMPDIR": str(home),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        # Where the functions find AWS.
        "AWS_ENDPOINT_URL": endpoint,
        # Requests are judged by the roles' policies, as on AWS; we are the account's root user.
        "AUTH": "true",
        # It would listen on every interface for these two, and tidy up in Docker.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "DOCKER_HOST": f"unix://{home}/no-docker.sock",
    }


def _is_ready(process: subprocess.Popen[bytes], endpoint: str) -> bool:
    deadline = time.monotonic() + READY_SECONDS
    while process.poll() is None:
        if time.monotonic() > deadline:
            raise child.Failed(f"MiniStack was not ready within {READY_SECONDS} s")
        # Refused, or answered with an error, as long as it starts.
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{endpoint}/_ministack/ready", timeout=5):
            return True
        time.sleep(0.05)
    return False
