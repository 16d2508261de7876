"""Brings .venv to what local/requirements.txt says; does nothing when it already is.

Run it with any Python 3.10 or later that has its venv module: `python3 local/install.py`.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Environment:
    """A virtual environment and the file that says what is in it."""

    path: Path
    requirements: Path
    what: str
    # Where the requirements name all that is needed, and pip need not ask the packages what they would like besides.
    complete: bool = False

    def wanted(self) -> str:
        """Names what it should hold: the packages, for this Python, at this path (a venv can't be moved)."""
        parts = [self.requirements.read_text(), sys.version, str(self.path)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def stamp(self) -> Path:
        """Written last, so that an installation that was cut short is begun anew."""
        return self.path / "installed.sha256"

    def is_installed(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text() == self.wanted()

    def bring(self) -> None:
        """Installs it, unless it is."""
        if self.is_installed():
            return
        # Two `make` at the same moment would otherwise empty it under each other.
        with open(self.requirements) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_installed():
                self._install()

    def _install(self) -> None:
        print(f"Installing {self.what} (once; about a minute) ...", file=sys.stderr, flush=True)
        try:
            venv.create(self.path, with_pip=True, clear=True)
        except subprocess.CalledProcessError:
            sys.exit("This Python cannot make a virtual environment. On Debian or Ubuntu: apt-get install python3-venv")
        pip = [str(self.path / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
        options = ["--no-deps"] if self.complete else []
        if subprocess.run([*pip, "install", *options, "--requirement", str(self.requirements)]).returncode != 0:
            sys.exit(f"Could not install {self.requirements.relative_to(ROOT)}; pip's message is above.")
        self.stamp.write_text(self.wanted())


LOCAL_CLOUD = Environment(ROOT / ".venv", ROOT / "local" / "requirements.txt", "the local cloud into .venv")


def main() -> None:
    if sys.version_info < (3, 10):
        sys.exit(f"Python 3.10 or later is needed; this is {sys.version.split()[0]}.")
    LOCAL_CLOUD.bring()


if __name__ == "__main__":
    main()
