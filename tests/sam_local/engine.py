"""The Docker engine: the one that runs already, or one of our own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docker
from docker.errors import DockerException

SOCKET = Path("/run/docker.sock")
DATA = Path("/run/docker-data")
LOG = Path("/run/dockerd.log")
START_SECONDS = 60
STOP_SECONDS = 20


class Unavailable(RuntimeError):
    """No engine can be had here, and why."""


def running() -> docker.DockerClient | None:
    """The engine that SAM would find."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException:
        return None
    return client


def install(need: str) -> None:
    """Brings Debian's engine, if there is none to start. `need` says why one must be started."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise Unavailable(f"{need}, and only root on Linux can start one here")
    if shutil.which("dockerd"):
        return
    if not shutil.which("apt-get"):
        raise Unavailable(f"{need}, none is installed, and there is no apt-get to install one with")
    for arguments in ("update", "install --yes --no-install-recommends docker.io"):
        _apt_get(arguments.split())


def _apt_get(arguments: list[str]) -> None:
    command = ["apt-get", "--quiet=2", "--option=DPkg::Lock::Timeout=300", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise Unavailable(f"`apt-get {' '.join(arguments)}` failed: {_last_line(done.stdout)}")


@contextlib.contextmanager
def started() -> Iterator[docker.DockerClient]:
    """Runs an engine for the length of the block; to be called where /run is nobody else's (`sealed.furnish`)."""
    # Without iptables, since many machines' kernels lack its modules. Docker's own proxy carries the published ports.
    arguments = [f"--host=unix://{SOCKET}", f"--data-root={DATA}", "--iptables=false", "--ip6tables=false"]
    with LOG.open("wb") as log:
        process = subprocess.Popen(["dockerd", *arguments], stdout=log, stderr=log, start_new_session=True)
    try:
        os.environ["DOCKER_HOST"] = f"unix://{SOCKET}"
        yield _client(process)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _client(process: subprocess.Popen[bytes]) -> docker.DockerClient:
    """Waits until the engine answers."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if client := running():
            return client
        time.sleep(0.05)
    raise Unavailable(f"dockerd did not start: {_last_line(LOG.read_text())}")


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1]
