"""`sam local invoke`, with the options that the README gives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import base_image
import services

INVOKE_SECONDS = 300


class Sam:
    def __init__(self, template: Path, here: services.Services) -> None:
        self._template = template
        self._variables = here.environment_file()
        # SAM asks AWS whose account this is, before each invocation: it is to ask the stand-in.
        self._environment = {**os.environ, "AWS_ENDPOINT_URL": here.account.endpoint, "SAM_CLI_TELEMETRY": "0"}
        # What SAM and the function said at the last invocation.
        self.log = here.home / "sam-local.log"

    def invoke(self, function: str, event: Path) -> Any:
        """The function's answer; what SAM printed in its place, if that is no JSON."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                self._command(function, event),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                text=True,
            )
            try:
                answer, _ = process.communicate(timeout=INVOKE_SECONDS)
            finally:
                # Asked like this, SAM takes its container away.
                process.terminate()
                process.wait()
        try:
            return json.loads(answer)
        except ValueError:
            return answer

    def _command(self, function: str, event: Path) -> list[str | Path]:
        return [
            Path(sys.executable).with_name("sam"),
            *("local", "invoke", function),
            *("--template", self._template),
            *("--event", event),
            *("--env-vars", self._variables),
            *("--add-host", f"{services.HOST}:host-gateway"),
            *("--parameter-overrides", f"Architecture={base_image.ARCHITECTURE}"),
            "--skip-pull-image",
        ]
