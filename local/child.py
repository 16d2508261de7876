"""Programs that we run, each in a process group of its own, none of which outlives us.

The group matters: `sam` starts cargo, the AWS stand-in starts the functions, and a Ctrl-C that reached only the
first of them would leave the others running.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

STOP_SECONDS = 10
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Command = Sequence[str | Path]


class Failed(RuntimeError):
    """A program that did not do what it was started for, with the reason as a person would want to read it."""


def leave_in_order() -> None:
    """Turns the signals that end a program into an ordinary exit, so that everything is stopped on the way out."""
    for number in SIGNALS:
        signal.signal(number, _leave)


def _leave(number: int, _frame: object) -> None:
    # A second Ctrl-C must not interrupt the cleaning up.
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


@contextlib.contextmanager
def running(
    command: Command,
    *,
    output: int | IO[bytes] | None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program for the length of the block; output None is the terminal."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output if output is not None else sys.stderr,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=directory,
        start_new_session=True,
        preexec_fn=_die_with_parent,
    )
    try:
        yield process
    finally:
        _stop(process)


def run(
    command: Command, *, log: Path | None, environment: Mapping[str, str] | None = None, directory: Path | None = None
) -> None:
    """Runs a program to its end. What it says goes to the log, shown only if it fails; no log is the terminal."""
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(log.open("wb")) if log else None
        process = stack.enter_context(running(command, output=output, environment=environment, directory=directory))
        code = process.wait()
    if code != 0:
        said = f":\n{log.read_text(errors='replace')}" if log else ", as said above"
        raise Failed(f"`{Path(command[0]).name} {command[1]}` failed{said}")


def _die_with_parent() -> None:
    """Has the kernel stop the program should we be killed outright (Linux alone can do that)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the program and all that it has started."""
    # It alone, at first: MiniStack ends its functions itself.
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    # Then what is left of the group, which bears its leader's id for as long as any of it is left.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
