"""Deploys what `sam build` has built, onto AWS: `migrate` first, then the stack.

    .venv/bin/python local/deployment.py [--check] [STAGE] [options of `sam deploy`]

`make deploy` builds first; with --check it only says where it would deploy. STAGE is a part of samconfig.toml,
without one `default`. The order matters where a version brings a migration: the
version that runs goes on working when its tables have more in them, but the next one refuses to work before they do,
and a canary of it would be rolled back. So `migrate` alone gets the new code, and is invoked; the stack follows. When
it is new there is nothing to migrate before, and it is done after.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from samcli import yamlhelper

import child
import samconfig

ROOT = Path(__file__).resolve().parent.parent
SAM = Path(sys.executable).with_name("sam")
BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
# `migrate` may wait for its locks until its own time-out; no function's is longer than 900 s.
PATIENCE = Config(read_timeout=920, retries={"total_max_attempts": 1})
# What says to `sam deploy` which stack is meant.
WHICH_STACK = {"--stack-name", "--region", "--profile", "--config-file", "--config-env", "--guided", "-g"}
# At these places a Linux binary says that it is one, and for which processor.
ELF, ELF_PROCESSOR = b"\x7fELF", slice(18, 20)
PROCESSORS = {b"\x3e\x00": "x86_64", b"\xb7\x00": "arm64"}


@dataclass(frozen=True)
class Account:
    cloudformation: Any
    functions: Any

    def migrate_function(self, stack: str) -> str | None:
        """The name of the stack's function, or None if there is no such stack or it was never complete."""
        try:
            found = self.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        except ClientError as error:
            if "does not exist" in error.response["Error"]["Message"]:
                return None
            raise
        outputs = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
        return outputs.get("MigrateFunctionName")


def deploy(account: Account, stack: str, built: Path, deploy_stack: Callable[[], None]) -> None:
    running = account.migrate_function(stack)
    if running is not None:
        _update(account, running, _program(built))
        _migrate(account, running, "nothing was deployed, and the version that ran goes on running")
    deploy_stack()
    deployed = account.migrate_function(stack)
    if deployed is None:
        raise child.Failed(f"the stack {stack} has no output MigrateFunctionName: nothing was migrated")
    _migrate(account, deployed, "the functions report every event until it succeeds, and nothing is lost")


def _program(built: Path) -> bytes:
    """What `sam build` made for `migrate`."""
    template = yamlhelper.yaml_parse(built.read_text())
    return (built.parent / template["Resources"]["MigrateFunction"]["Properties"]["CodeUri"] / "bootstrap").read_bytes()


def _update(account: Account, function: str, program: bytes) -> None:
    """The function alone gets the new code; the deployment of the stack puts the same there."""
    if not program.startswith(ELF) or program[ELF_PROCESSOR] not in PROCESSORS:
        raise child.Failed("what was built is no program for x86_64 or arm64; build it again")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        package.writestr(entry, program)
    account.functions.update_function_code(
        FunctionName=function, ZipFile=archive.getvalue(), Architectures=[PROCESSORS[program[ELF_PROCESSOR]]]
    )
    account.functions.get_waiter("function_updated_v2").wait(FunctionName=function)


def _migrate(account: Account, function: str, otherwise: str) -> None:
    response = account.functions.invoke(FunctionName=function, Payload=b"{}")
    answer: dict[str, Any] = json.loads(response["Payload"].read())
    if "FunctionError" in response:
        raise child.Failed(f"{function} failed: {answer.get('errorMessage', answer)}\n{otherwise}")
    print(f"migrate: {json.dumps(answer)}", file=sys.stderr, flush=True)


def _main(arguments: Sequence[str]) -> None:
    check = arguments[:1] == ["--check"]
    arguments = arguments[check:]
    named = [argument for argument in arguments[:1] if not argument.startswith("-")]
    stage = named[0] if named else "default"
    options = arguments[len(named) :]
    try:
        session = _session(stage, options)
        if check:
            _tell_where(session, stage)
        else:
            _deploy(session, stage, options)
    except (child.Failed, BotoCoreError, ClientError) as error:
        sys.exit(f"deployment.py: {error}")


def _session(stage: str, options: Sequence[str]) -> boto3.Session:
    """The account and region that `sam deploy` will find too."""
    elsewhere = [option for option in options if option.split("=")[0] in WHICH_STACK]
    if elsewhere:
        raise child.Failed(f"{elsewhere[0]}: only samconfig.toml says which stack it is; `sam deploy --guided` writes it")
    own = samconfig.options(stage)
    # boto3 knows another variable than the rest of AWS's programs.
    region = own.get("region") or os.environ.get("AWS_REGION")
    session = boto3.Session(profile_name=own.get("profile"), region_name=region)
    if session.region_name is None:
        raise child.Failed('no region: `aws configure`, or `export AWS_REGION=...`, or `region = "..."` in samconfig.toml')
    if session.get_credentials() is None:
        raise child.Failed("no credentials of an AWS account: `aws configure`, or `aws sso login`")
    return session


def _tell_where(session: boto3.Session, stage: str) -> None:
    account = session.client("sts").get_caller_identity()["Account"]
    print(f"Stack {samconfig.stack_name(stage)} in account {account}, {session.region_name}", flush=True)


def _deploy(session: boto3.Session, stage: str, options: Sequence[str]) -> None:
    if not BUILT.exists():
        raise child.Failed("nothing is built; `make deploy` builds first")

    def deploy_stack() -> None:
        command = [SAM, "deploy", f"--config-env={stage}", f"--region={session.region_name}", *options]
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            raise child.Failed("`sam deploy` failed, as said above")

    account = Account(session.client("cloudformation"), session.client("lambda", config=PATIENCE))
    deploy(account, samconfig.stack_name(stage), BUILT, deploy_stack)


if __name__ == "__main__":
    os.environ.setdefault("SAM_CLI_TELEMETRY", "0")
    _main(sys.argv[1:])
