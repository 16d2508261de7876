"""Ports of the loopback for programs that are told theirs before they listen."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserved() -> Iterator[int]:
    """A port that nobody else gets for the length of the block, whether or not somebody listens on it yet, or still.

    The kernel gives a port away, also as the near end of a connection, as soon as no socket is bound to it. So one is,
    and never listens; a listener shares the port with it if it sets SO_REUSEADDR, as servers do.
    """
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        yield port
