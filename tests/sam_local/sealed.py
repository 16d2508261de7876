"""Runs a command as if on a machine of its own: a loopback, a process table and a /run that nobody else sees.

A Docker engine changes its machine: a bridge, routing, mounts, a daemon for containers. In here none of that
touches the machine outside, two engines can't meet, and whatever is left goes away with the last process, however it
ended. Needs root and Linux's `unshare`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

# Killed with its parent, `unshare` kills its child, the first process of the namespace, and with that all the others.
SEAL = [
    *("setpriv", "--pdeathsig=KILL"),
    *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
]
STOP_SECONDS = 30

# From <linux/sockios.h> and <linux/if.h>.
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def is_allowed() -> bool:
    """Whether this machine lets us: a container without privileges doesn't, though we be root in it."""
    try:
        return subprocess.run([*SEAL, "true"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        return False


def run(command: list[str]) -> int:
    """Runs the command in there and gives its exit code; ends it when this process is asked to end."""
    process = subprocess.Popen([*SEAL, *command], stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks it to stop what it started, as Ctrl-C would; then stops whatever hasn't."""
    os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    process.kill()
    process.wait()


def furnish() -> None:
    """To be called in there first: switches the loopback on, and puts an empty file system in memory at /run."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    temporary = Path("/run/tmp")
    temporary.mkdir()
    temporary.chmod(0o1777)
    tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
