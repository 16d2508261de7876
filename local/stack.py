"""template.yaml, built and deployed as it would be onto AWS: `sam build`, then `migrate` and `sam deploy`."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import child
import deployment
import mends
import samconfig
from aws import Aws

ROOT = Path(__file__).resolve().parent.parent
NAME = "onemail"
GUIDED_SECONDS = 300
# Databases, networks, topics and identities.
OF_AN_ACCOUNT = re.compile("Database|Migration|Proxy|Vpc|Subnet|SecurityGroup|CreateVpc|Alarm|Producer|(Create)?Ses(Identity|Conf)")
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Stack:
    """The deployed stack: its name and its outputs."""

    name: str
    events_queue_url: str
    dead_letter_queue_url: str
    configuration_set: str
    feedback_topic: str
    feedback_queue_url: str
    feedback_dead_letter_queue_url: str
    subscription_dead_letter_queue_url: str
    cleanup_dead_letter_queue_url: str
    notify_function: str
    feedback_function: str
    cleanup_function: str
    migrate_function: str
    notify_log_group: str
    feedback_log_group: str
    cleanup_log_group: str


def architecture() -> str:
    """This machine's processor as Lambda names it; the functions run here, as they are."""
    if platform.system() != "Linux" or platform.machine() not in ARCHITECTURES:
        raise child.Failed(
            "the local cloud runs Lambda's Linux binary itself, so it needs Linux on x86_64 or aarch64; "
            f"this is {platform.system()} on {platform.machine()}"
        )
    return ARCHITECTURES[platform.machine()]


def build(home: Path) -> Path:
    """Builds the functions, and gives the path of the built template."""
    if shutil.which("cargo") is None:
        raise child.Failed("cargo is not on the PATH: install Rust (https://rustup.rs)")
    arm = ["--arm64"] if architecture() == "arm64" else []
    # The very command that `sam build` will run, and find nothing left to do: SAM keeps cargo's progress to itself,
    # and the first build takes minutes.
    child.run(
        ["cargo", "lambda", "build", "--release", *arm, "--bin", NAME],
        log=None,
        environment=_environment(home),
        directory=ROOT,
    )
    built = home / "build"
    _sam(
        home,
        "build",
        f"--build-dir={built}",
        "--parameter-overrides",
        f"Architecture={architecture()}",
    )
    mends.mend(built / "template.yaml")
    return built / "template.yaml"


def deploy(
    home: Path, aws: Aws, template: Path, parameters: Mapping[str, str], stage: str = "default", name: str | None = None
) -> Stack:
    """Deploys the built template as samconfig.toml has it for this stage, with the migrations.

    `parameters` come on top of the stage's own; `name` is for another stack beside its.
    """
    given = {**parameters_of(stage), **parameters, "Architecture": architecture()}
    name = name or samconfig.stack_name(stage)

    def deploy_stack() -> None:
        _sam(
            home,
            "deploy",
            f"--config-file={ROOT / 'samconfig.toml'}",
            f"--config-env={stage}",
            f"--stack-name={name}",
            f"--template-file={mends.with_literals(template, given)}",
            "--no-confirm-changeset",
            "--no-progressbar",
            "--parameter-overrides",
            *(f'{parameter}="{value}"' for parameter, value in given.items()),
            endpoint=aws.endpoint,
        )
        stack = _outputs(aws, name)
        mends.let_send(aws, stack.notify_function)
        mends.let_delay(aws, stack.notify_function)
        mends.let_delay(aws, stack.feedback_function)

    account = deployment.Account(aws.client("cloudformation"), aws.client("lambda"))
    deployment.deploy(account, name, template, deploy_stack)
    return _outputs(aws, name)


def parameters_of(stage: str) -> dict[str, str]:
    """Those that samconfig.toml has for it, but for what is of one AWS account alone."""
    return {name: value for name, value in samconfig.parameters(stage).items() if not OF_AN_ACCOUNT.match(name)}


def deploy_guided(
    home: Path, aws: Aws, template: Path, parameters: Mapping[str, str], name: str, config: Path
) -> subprocess.CompletedProcess[str]:
    """`sam deploy --guided` by somebody who takes what is offered; the parameters are what is offered."""
    given = {**parameters, "Architecture": architecture()}
    return subprocess.run(
        [
            Path(sys.executable).with_name("sam"),
            "deploy",
            "--guided",
            f"--config-file={config}",
            f"--stack-name={name}",
            f"--template-file={mends.with_literals(template, given)}",
            "--no-progressbar",
            "--parameter-overrides",
            *(f'{parameter}="{value}"' for parameter, value in given.items()),
        ],
        # One for each question, and more than there are.
        input="\n" * 100,
        capture_output=True,
        text=True,
        env=_environment(home) | {"AWS_ENDPOINT_URL": aws.endpoint},
        timeout=GUIDED_SECONDS,
        cwd=home,
    )


def invoke(aws: Aws, function: str, event: object) -> Any:
    """Invokes a function and gives its answer."""
    response = aws.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event).encode())
    answer = json.loads(response["Payload"].read())
    if "FunctionError" in response:
        raise child.Failed(f"{function} failed: {json.dumps(answer)}")
    return answer


def _outputs(aws: Aws, name: str) -> Stack:
    stacks = aws.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stacks[0]["Outputs"]}
    return Stack(
        name=name,
        events_queue_url=outputs["EventsQueueUrl"],
        dead_letter_queue_url=outputs["DeadLetterQueueUrl"],
        configuration_set=outputs["ConfigurationSetName"],
        feedback_topic=outputs["FeedbackTopicArn"],
        feedback_queue_url=outputs["FeedbackQueueUrl"],
        feedback_dead_letter_queue_url=outputs["FeedbackDeadLetterQueueUrl"],
        subscription_dead_letter_queue_url=outputs["SubscriptionDeadLetterQueueUrl"],
        cleanup_dead_letter_queue_url=outputs["CleanupDeadLetterQueueUrl"],
        notify_function=outputs["NotifyFunctionName"],
        feedback_function=outputs["FeedbackFunctionName"],
        cleanup_function=outputs["CleanupFunctionName"],
        migrate_function=outputs["MigrateFunctionName"],
        notify_log_group=outputs["NotifyLogGroupName"],
        feedback_log_group=outputs["FeedbackLogGroupName"],
        cleanup_log_group=outputs["CleanupLogGroupName"],
    )


def _sam(home: Path, action: str, *arguments: str, endpoint: str | None = None) -> None:
    sam = Path(sys.executable).with_name("sam")
    child.run(
        [sam, action, *arguments],
        log=home / f"sam-{action}.log",
        environment=_environment(home) | ({"AWS_ENDPOINT_URL": endpoint} if endpoint else {}),
        directory=ROOT,
    )


def _environment(home: Path) -> dict[str, str]:
    """Ours, with .venv's programs on the PATH: cargo finds `cargo lambda` there."""
    programs = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        # SAM leaves temporary directories behind.
        "TMPDIR": str(home),
        "SAM_CLI_TELEMETRY": "0",
        # Seconds between two looks at the deployment. SAM's five are meant for AWS.
        "SAM_CLI_POLL_DELAY": "0.2",
    }
