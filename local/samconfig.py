"""What samconfig.toml says of a stage."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomlkit

import child

FILE = Path(__file__).resolve().parent.parent / "samconfig.toml"


def options(stage: str, text: str | None = None) -> dict[str, Any]:
    """Those of `sam deploy`, which the stage may have under `global` too."""
    stages = tomlkit.parse(FILE.read_text() if text is None else text).unwrap()
    if stage not in stages:
        raise child.Failed(f"samconfig.toml has no {stage}; it has {', '.join(sorted(set(stages) - {'version'}))}")
    of_global, own = (stages[stage].get(command, {}).get("parameters", {}) for command in ("global", "deploy"))
    return {**of_global, **own}


def stack_name(stage: str) -> str:
    name = options(stage).get("stack_name")
    if not name:
        raise child.Failed(f"samconfig.toml has no stack_name under [{stage}.global.parameters]")
    return str(name)


def parameters(stage: str, text: str | None = None) -> dict[str, str]:
    """The template's. In the file they are a list, or one text, as `sam deploy --guided` writes it; a value may be quoted."""
    written: str | Sequence[str] = options(stage, text).get("parameter_overrides", [])
    words = [word for part in ([written] if isinstance(written, str) else written) for word in shlex.split(part)]
    return dict(word.split("=", 1) for word in words)
