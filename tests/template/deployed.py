"""template.yaml as CloudFormation would see it: transformed by SAM, its conditions and functions worked out.

What only a deployment knows is a word in angle brackets: `<EventsQueue.Arn>`.
"""

from __future__ import annotations

import copy
import functools
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Without it the transform asks the machine for a region.
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-west-1")

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

# It has features to tell of that aren't used here.
logging.getLogger("samtranslator").setLevel(logging.CRITICAL)

ROOT = Path(__file__).resolve().parents[2]
SOURCE: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())
PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/onemail/51af3dc0-da77-11e4-872e-1234567db123",
    "AWS::StackName": "onemail",
    "AWS::URLSuffix": "amazonaws.com",
}
NO_VALUE = object()
LISTS = ("CommaDelimitedList",)

Resource = dict[str, Any]


class Refused(Exception):
    """CloudFormation would not take these parameters."""


class Deployed:
    """The template with these parameters; the others have their defaults."""

    def __init__(self, parameters: Mapping[str, object]) -> None:
        self._values: dict[str, Any] = {**PSEUDO, **_parameters(parameters)}
        template = _transformed(tuple(sorted((name, str(value)) for name, value in parameters.items())))
        self._conditions = template["Conditions"]
        self._refuse_by_rules()
        self.resources: dict[str, Resource] = {}
        for name, resource in template["Resources"].items():
            if "Condition" not in resource or self._holds(resource["Condition"]):
                self.resources[name] = {**resource, "Properties": self.value(resource.get("Properties", {}))}
        self.outputs = {
            name: self.value(output["Value"])
            for name, output in template["Outputs"].items()
            if "Condition" not in output or self._holds(output["Condition"])
        }

    def of_type(self, kind: str) -> dict[str, Resource]:
        return {name: resource for name, resource in self.resources.items() if resource["Type"] == kind}

    def properties(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.resources[name]["Properties"]
        return found

    def value(self, node: Any) -> Any:
        """Works out the functions in it."""
        if isinstance(node, list):
            return [item for item in map(self.value, node) if item is not NO_VALUE]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            (name, argument) = next(iter(node.items()))
            if name in _FUNCTIONS:
                return _FUNCTIONS[name](self, argument)
        values = {name: self.value(item) for name, item in node.items()}
        return {name: item for name, item in values.items() if item is not NO_VALUE}

    def _holds(self, condition: str) -> bool:
        return bool(self.value(self._conditions[condition]))

    def _refuse_by_rules(self) -> None:
        for rule in SOURCE["Rules"].values():
            if "RuleCondition" in rule and not self.value(rule["RuleCondition"]):
                continue
            for assertion in rule["Assertions"]:
                if not self.value(assertion["Assert"]):
                    raise Refused(assertion["AssertDescription"])

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        return self._values.get(name, f"<{name}>")

    def _get_att(self, argument: Any) -> str:
        path = argument if isinstance(argument, str) else ".".join(argument)
        if path in ("EventsQueue.QueueName", "DeadLetterQueue.QueueName", "FeedbackQueue.QueueName"):
            name: str = self.resources[path.split(".")[0]]["Properties"]["QueueName"]
            return name
        if path.endswith(".DBProxyArn"):
            return "arn:aws:rds:eu-west-1:123456789012:db-proxy:prx-0123456789abcdef0"
        return f"<{path}>"

    def _sub(self, argument: Any) -> str:
        text, more = argument if isinstance(argument, list) else (argument, {})
        more = {name: self.value(item) for name, item in more.items()}

        def found(match: re.Match[str]) -> str:
            name = match.group(1)
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            value = more[name] if name in more else self._values.get(name, f"<{name}>")
            return ",".join(value) if isinstance(value, list) else str(value)

        return re.sub(r"\$\{([^}]+)\}", found, text)

    def _if(self, argument: Any) -> Any:
        return self.value(argument[1] if self._holds(argument[0]) else argument[2])

    def _select(self, argument: Any) -> Any:
        index, items = argument
        items = self.value(items)
        # A parameter that is an empty list has one empty item.
        return items[int(index)]


_FUNCTIONS: dict[str, Any] = {
    "Ref": Deployed._ref,
    "Fn::GetAtt": Deployed._get_att,
    "Fn::Sub": Deployed._sub,
    "Fn::If": Deployed._if,
    "Fn::Select": Deployed._select,
    "Fn::Join": lambda self, argument: argument[0].join(map(str, self.value(argument[1]))),
    "Fn::Split": lambda self, argument: self.value(argument[1]).split(argument[0]),
    "Fn::Equals": lambda self, argument: str(self.value(argument[0])) == str(self.value(argument[1])),
    "Fn::Not": lambda self, argument: not self.value(argument[0]),
    "Fn::And": lambda self, argument: all(self.value(item) for item in argument),
    "Fn::Or": lambda self, argument: any(self.value(item) for item in argument),
    "Condition": lambda self, argument: self._holds(argument) if isinstance(argument, str) else {
        "Condition": self.value(argument)
    },
}


def _parameters(given: Mapping[str, object]) -> dict[str, Any]:
    """All parameters, each checked as CloudFormation would."""
    unknown = set(given) - set(SOURCE["Parameters"])
    if unknown:
        raise Refused(f"no such parameter: {', '.join(sorted(unknown))}")
    values: dict[str, Any] = {}
    for name, parameter in SOURCE["Parameters"].items():
        if name not in given and "Default" not in parameter:
            raise Refused(f"{name} is missing")
        value = str(given.get(name, parameter.get("Default")))
        if "AllowedValues" in parameter and value not in map(str, parameter["AllowedValues"]):
            raise Refused(f"{name}: {value} is none of its values")
        if "AllowedPattern" in parameter and not re.search(parameter["AllowedPattern"], value):
            raise Refused(f"{name}: {parameter['ConstraintDescription']}")
        if parameter["Type"] == "Number":
            if not parameter.get("MinValue", 0) <= float(value) <= parameter.get("MaxValue", float("inf")):
                raise Refused(f"{name}: {value} is out of range")
        values[name] = value.split(",") if parameter["Type"] in LISTS else value
    return values


@functools.cache
def _transformed(parameters: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    source = copy.deepcopy(SOURCE)
    # As `sam build` and `sam deploy` leave it.
    source["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
    found: dict[str, Any] = transform(source, dict(parameters), SimpleNamespace(load=dict))
    return found
