"""Runs all tests, and counts them: the last line is `N passed, N failed`, with what was skipped.

    .venv/bin/python tests/run.py            # everything
    .venv/bin/python tests/run.py rust e2e   # only these steps

A step that could not run here says so and is counted as skipped, never as passed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
PYTHON = str(BIN / "python")
# Exit code by which a script says that it was skipped, as automake has it.
SKIPPED = 77

CARGO_RESULT = re.compile(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
OK_LINE = re.compile(r"^ok\b", re.MULTILINE)
NOT_OK_LINE = re.compile(r"^not ok\b", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    name: str
    what: str
    command: Sequence[str]


@dataclass(frozen=True)
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )


def with_postgres(*command: str, system: bool = False) -> list[str]:
    options = ["--system"] if system else []
    return [PYTHON, "local/postgres.py", "run", *options, "--", *command]


STEPS = [
    Step("format", "formatting", ["cargo", "fmt", "--check"]),
    Step("lint", "clippy, warnings denied", ["cargo", "clippy", "--all-targets", "--quiet", "--", "--deny", "warnings"]),
    Step("template", "sam validate --lint", [str(BIN / "sam"), "validate", "--lint"]),
    Step("cfn-lint", "cfn-lint, all rules", [str(BIN / "cfn-lint"), "--include-checks", "I", "--include-experimental", "--", "template.yaml"]),
    Step("checkov", "checkov", [PYTHON, "tests/template/checkov.py"]),
    Step("template-checks", "our own checks of the transformed template", [PYTHON, "tests/template/check.py"]),
    Step("rust", "unit and integration tests, PostgreSQL 18", with_postgres("cargo", "test", "--no-fail-fast")),
    Step(
        "lease",
        "integration tests in lease mode, PostgreSQL 18",
        with_postgres("env", "TEST_CLAIM_MODE=lease", "cargo", "test", "--no-fail-fast", "--test", "it"),
    ),
    Step(
        "postgres-15",
        "integration tests, the machine's own PostgreSQL",
        with_postgres("cargo", "test", "--no-fail-fast", "--test", "it", "--test", "emails", "--test", "crashes", system=True),
    ),
    Step("e2e", "end to end through the local cloud", [PYTHON, "local/e2e.py"]),
    Step("runbook", "the runbook, tried in the local cloud", [PYTHON, "local/runbook.py"]),
    Step("sam-local", "sam local invoke", ["bash", "tests/sam_local.sh"]),
]


def main(names: Sequence[str]) -> int:
    unknown = set(names) - {step.name for step in STEPS}
    if unknown:
        sys.exit(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(step.name for step in STEPS)}")
    total = Count()
    summary = []
    for step in STEPS:
        if names and step.name not in names:
            continue
        started = time.monotonic()
        print(f"\n== {step.what}", flush=True)
        count = run(step)
        total += count
        summary.append(
            f"{step.what}: {count.passed} passed, {count.failed} failed, {count.skipped} skipped "
            f"in {time.monotonic() - started:.0f} s"
        )
    print("\n" + "\n".join(summary))
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {total.failed} failed{skipped}", flush=True)
    return 1 if total.failed else 0


def run(step: Step) -> Count:
    output = []
    process = subprocess.Popen(
        step.command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # Most tests wait for a process of their own, so more of them than there are cores can run at once.
        env={"RUST_TEST_THREADS": "8", **os.environ, "SAM_CLI_TELEMETRY": "0"},
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            print(line, end="", flush=True)
        code = process.wait()
    except BaseException:
        # What the step started, it stops itself when it is asked to.
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    return counted("".join(output), code)


def counted(output: str, code: int) -> Count:
    """What a step's output counts; a step that counts nothing is one test. Its exit code has the last word."""
    if code == SKIPPED:
        return Count(skipped=1)
    count = Count()
    for passed, failed, ignored in CARGO_RESULT.findall(output):
        count += Count(int(passed), int(failed), int(ignored))
    count += Count(len(OK_LINE.findall(output)), len(NOT_OK_LINE.findall(output)))
    if count == Count():
        return Count(passed=1) if code == 0 else Count(failed=1)
    if code != 0 and count.failed == 0:
        count += Count(failed=1)
    return count


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
