"""What linters can't know of template.yaml: that its parts fit each other, the code and the documentation.

    .venv/bin/python tests/template/check.py

One line for each check, `ok - ...` or `not ok - ...`; the exit code is 1 if there is one of the latter.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

import alarms
import choices
import dashboard
import feedback
import network
import queues
import roles
import words

CHECKS: list[Callable[[], None]] = [
    *queues.CHECKS,
    *feedback.CHECKS,
    *roles.CHECKS,
    *network.CHECKS,
    *choices.CHECKS,
    *alarms.CHECKS,
    *dashboard.CHECKS,
    *words.CHECKS,
]


def passes(check: Callable[[], None]) -> bool:
    name = check.__name__.replace("_", " ")
    try:
        check()
    except Exception as error:
        print(f"not ok - {name}: {error}", flush=True)
        if not isinstance(error, AssertionError):
            traceback.print_exc()
        return False
    print(f"ok - {name}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(0 if all([passes(check) for check in CHECKS]) else 1)
