#!/usr/bin/env python3
"""Lets the containers of this machine's Docker engine reach ports of this machine's loopback.

    python3 tests/sam_local/doorway.py 5432 4566

On Linux a container's host.docker.internal is the address of Docker's bridge, where a service that listens on
127.0.0.1 can't be reached. This listens on the bridge's address, on the same ports, and carries what comes from a
container to the loopback. Docker Desktop (a Mac) does it by itself: there is no bridge here then, and nothing to do.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import signal
import socket
import socketserver
import struct
import sys
import threading
from collections.abc import Iterable, Iterator

BRIDGE = "docker0"
# From <linux/sockios.h>.
SIOCGIFADDR = 0x8915


class _Passage(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError), socket.create_connection(self.server.inside) as inside:  # type: ignore[attr-defined]
            back = threading.Thread(target=_carry, args=(inside, self.request), daemon=True)
            back.start()
            _carry(self.request, inside)
            back.join()


class _Door(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, bridge: str, port: int) -> None:
        self.inside = ("127.0.0.1", port)
        super().__init__((bridge, port), _Passage)

    def server_bind(self) -> None:
        # Only what comes over the bridge: a neighbour on the network can route to the bridge's address too.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, BRIDGE.encode())
        super().server_bind()


def _carry(source: socket.socket, target: socket.socket) -> None:
    """Copies until the source has no more, then says so to the target."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def bridge_address() -> str | None:
    """The address that containers know this machine by, if it is this machine that has it."""
    if sys.platform != "linux":
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", BRIDGE.encode()))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


@contextlib.contextmanager
def opened(ports: Iterable[int]) -> Iterator[None]:
    """Keeps these ports of the loopback reachable for the length of the block."""
    bridge = bridge_address()
    with contextlib.ExitStack() as doors:
        if bridge is not None:
            for port in ports:
                door = doors.enter_context(_Door(bridge, port))
                threading.Thread(target=door.serve_forever, daemon=True).start()
                doors.callback(door.shutdown)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description="Lets Docker's containers reach ports of this machine's loopback.")
    parser.add_argument("ports", nargs="+", type=int, metavar="PORT")
    ports = parser.parse_args().ports
    if bridge_address() is None:
        sys.exit(f"There is no {BRIDGE} here: Docker Desktop needs no doorway, and without an engine it leads nowhere.")
    with contextlib.suppress(KeyboardInterrupt), opened(ports):
        print(f"host.docker.internal leads to 127.0.0.1 on {', '.join(map(str, ports))}; Ctrl-C to end", flush=True)
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
