"""Where MiniStack does not do as AWS does, and the template must be helped along.

Each of these makes the local cloud a little less like AWS. When one is no longer needed, take it out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import child
from aws import Aws


def take_plain_http(template: Path) -> None:
    """The queues take requests over TLS only; MiniStack speaks plain HTTP on loopback. So here they take only that."""
    text, count = re.subn(r"(aws:SecureTransport: )'false'", r"\1'true'", template.read_text())
    if count != 4:
        raise child.Failed(f"{template} was expected to name aws:SecureTransport four times, and does so {count} times")
    template.write_text(text)


def repeat_concurrency(aws: Aws, function: str) -> None:
    """MiniStack takes a mapping's concurrency from a parameter as text, which it then can't compare with a number."""
    functions = aws.client("lambda")
    for mapping in functions.list_event_source_mappings(FunctionName=function)["EventSourceMappings"]:
        limit = int(mapping["ScalingConfig"]["MaximumConcurrency"])
        functions.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": limit})


def let_send(aws: Aws, function: str) -> None:
    """MiniStack judges SendEmail by the resource `*` alone, not by identity and configuration set."""
    _widen_role(aws, function, "send", "ses:SendEmail")


def let_delay(aws: Aws, function: str) -> None:
    """MiniStack asks for a permission of its own for a batch, where AWS asks for that of the single action."""
    _widen_role(aws, function, "delay", "sqs:ChangeMessageVisibilityBatch")


def _widen_role(aws: Aws, function: str, name: str, action: str) -> None:
    """Adds to the function's role what the role's own policy rightly lacks."""
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
    configuration = aws.client("lambda").get_function_configuration(FunctionName=function)
    aws.client("iam").put_role_policy(
        RoleName=configuration["Role"].rsplit("/", 1)[-1],
        PolicyName=f"ministack-{name}",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
