"""Brings .venv to what local/requirements.txt says; does nothing when it already is.

Run it with any Python 3.10 or later that has its venv module: `python3 local/install.py`.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "local" / "requirements.txt"
# Written last, so that an installation that was cut short is begun anew.
STAMP = VENV / "installed.sha256"


def wanted() -> str:
    """Names what .venv should hold: the packages, for this Python, at this path (a venv can't be moved)."""
    parts = [REQUIREMENTS.read_text(), sys.version, str(VENV)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_installed() -> bool:
    return STAMP.is_file() and STAMP.read_text() == wanted()


def install() -> None:
    print("Installing the local cloud into .venv (once; about a minute) ...", file=sys.stderr, flush=True)
    try:
        venv.create(VENV, with_pip=True, clear=True)
    except subprocess.CalledProcessError:
        sys.exit("This Python cannot make a virtual environment. On Debian or Ubuntu: apt-get install python3-venv")
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    if subprocess.run([*pip, "install", "--requirement", str(REQUIREMENTS)]).returncode != 0:
        sys.exit("Could not install local/requirements.txt; pip's message is above.")
    STAMP.write_text(wanted())


def main() -> None:
    if sys.version_info < (3, 10):
        sys.exit(f"Python 3.10 or later is needed; this is {sys.version.split()[0]}.")
    if is_installed():
        return
    # Two `make` at the same moment would otherwise empty .venv under each other.
    with open(ROOT / "local" / "requirements.txt") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_installed():
            install()


if __name__ == "__main__":
    main()
