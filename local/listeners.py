"""Which addresses a process and its descendants listen on, as Linux's /proc tells."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

PROC = Path("/proc")
LISTENING = "0A"


def of_process_and_its_children() -> list[str]:
    """The addresses, as `127.0.0.1:5432` or `[::]:5432`, that this process and its descendants listen on."""
    sockets = {inode for process in [os.getpid(), *children_of(os.getpid())] for inode in _sockets_of(process)}
    return sorted(address for inode, address in _listening() if inode in sockets)


def children_of(process: int) -> list[int]:
    """The ids of all descendants."""
    parents = {int(entry.name): _parent(entry) for entry in PROC.iterdir() if entry.name.isdigit()}
    found = [process]
    for one in found:
        found += [each for each, parent in parents.items() if parent == one]
    return found[1:]


def is_running(process: int) -> bool:
    """Whether it is there and more than a dead entry in the process table."""
    return _status(PROC / str(process), "State")[:1] not in ("", "Z", "X")


def _parent(entry: Path) -> int:
    return int(_status(entry, "PPid") or 0)


def _status(entry: Path, name: str) -> str:
    with contextlib.suppress(OSError):
        for line in (entry / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return line.split(":", 1)[1].strip()
    return ""


def _sockets_of(process: int) -> list[str]:
    found = []
    with contextlib.suppress(OSError):
        for descriptor in (PROC / str(process) / "fd").iterdir():
            with contextlib.suppress(OSError):
                target = os.readlink(descriptor)
                if target.startswith("socket:["):
                    found.append(target.removeprefix("socket:[").removesuffix("]"))
    return found


def _listening() -> list[tuple[str, str]]:
    """The inode and address of every listening socket of this machine."""
    found = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with contextlib.suppress(FileNotFoundError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING:
                    found.append((fields[9], _address(fields[1], family)))
    return found


def _address(field: str, family: socket.AddressFamily) -> str:
    digits, port = field.split(":")
    # Each 32 bits are in the machine's own byte order.
    words = [bytes.fromhex(digits[start : start + 8])[::-1] for start in range(0, len(digits), 8)]
    host = socket.inet_ntop(family, b"".join(words))
    return f"{host}:{int(port, 16)}" if family == socket.AF_INET else f"[{host}]:{int(port, 16)}"
