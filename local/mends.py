"""Where MiniStack does not do as AWS does, and the template must be helped along.

Each of these makes the local cloud a little less like AWS. When one is no longer needed, take it out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samcli import yamlhelper

import child
from aws import Aws


# What MiniStack doesn't know at all.
UNKNOWN_TYPES = {"AWS::Logs::QueryDefinition"}
# The queues' policies.
REFUSALS_OF_PLAIN_HTTP = 6


def mend(template: Path) -> None:
    """Changes the built template, before it is deployed, to what MiniStack can hold."""
    built = yamlhelper.yaml_parse(template.read_text())
    _leave_out(built["Resources"])
    _take_plain_http(built["Resources"])
    template.write_text(yamlhelper.yaml_dump(built))


def _leave_out(resources: dict[str, Any]) -> None:
    """MiniStack has no CodeDeploy, so here a new version takes over at once, and no saved queries."""
    for name in [name for name, resource in resources.items() if resource["Type"] in UNKNOWN_TYPES]:
        del resources[name]
    del resources["NotifyFunction"]["Properties"]["DeploymentPreference"]


def _take_plain_http(resources: dict[str, Any]) -> None:
    """The queues take requests over TLS only; MiniStack speaks plain HTTP on loopback. So here they take only that."""
    statements = [
        statement
        for resource in resources.values()
        if resource["Type"] == "AWS::SQS::QueuePolicy"
        for statement in resource["Properties"]["PolicyDocument"]["Statement"]
        if statement.get("Sid") == "OnlyOverTls"
    ]
    if len(statements) != REFUSALS_OF_PLAIN_HTTP:
        raise child.Failed(f"{len(statements)} queues refuse plain HTTP, not {REFUSALS_OF_PLAIN_HTTP}")
    for statement in statements:
        statement["Condition"] = {"Bool": {"aws:SecureTransport": "true"}}


def with_literals(template: Path, parameters: Mapping[str, str]) -> Path:
    """MiniStack takes a mapping's numbers and switches from parameters as text, which it then can't work with. So here
    the template has them as they are; gives the path of that copy."""
    built = yamlhelper.yaml_parse(template.read_text())
    given = {name: parameter.get("Default") for name, parameter in built["Parameters"].items()} | dict(parameters)
    queue = built["Resources"]["NotifyFunction"]["Properties"]["Events"]["Queue"]["Properties"]
    queue["Enabled"] = given["SendingEnabled"] == "true"
    queue["ScalingConfig"]["MaximumConcurrency"] = int(given["MaximumConcurrency"])
    copy = template.with_name("deployed.yaml")
    copy.write_text(yamlhelper.yaml_dump(built))
    return copy


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
