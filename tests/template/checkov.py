"""Has checkov look at template.yaml. What it is told to pass over is in the template's Metadata, with the reason.

    .venv/bin/python tests/template/checkov.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "local"))

import install

CHECKOV = install.Environment(
    ROOT / ".local" / "checkov", Path(__file__).with_name("checkov.txt"), "checkov into .local/checkov", complete=True
)


def main() -> int:
    CHECKOV.bring()
    program = CHECKOV.path / "bin" / "checkov"
    options = ["--framework", "cloudformation", "--compact", "--quiet", "--skip-download"]
    done = subprocess.run([program, "--file", "template.yaml", *options], cwd=ROOT, capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="", flush=True)
    # It also ends well when it could read nothing.
    if "Passed checks: 0" in done.stdout or "Passed checks" not in done.stdout:
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
