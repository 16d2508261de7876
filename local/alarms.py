"""Which of the stack's alarms ring, judged here: MiniStack keeps alarms, but has none of the metrics that they watch.

What a function's own metrics are is read from its log, as CloudWatch does; what SQS and the mappings say is asked of the
queues and worked out from the lines of the records that failed. Dimensions count. Lambda's, SES's and RDS's metrics
aren't there, so their alarms never ring here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from cloud import Cloud

# The outcomes of records that the functions' answers name.
FAILED = ("released", "unknown", "refused")

Alarm = dict[str, Any]


class Alarms:
    """Looks at what has happened since it was made, as if all periods were as long as that.

    Ages are taken for `hurried` times what they are, so that nobody has to wait for a quarter of an hour.
    """

    def __init__(self, here: Cloud, hurried: float = 1) -> None:
        self._here = here
        self._hurried = hurried
        self._since = {group: len(self._lines(group)) for group in self._functions().values()}

    def ring(self, name: str) -> bool:
        """`name` is the alarm's in the template."""
        alarm = self._alarm(name)
        value = self._value(alarm)
        if alarm["ComparisonOperator"] == "GreaterThanThreshold":
            return value > alarm["Threshold"]
        return value >= alarm["Threshold"]

    def _alarm(self, name: str) -> Alarm:
        resource = self._here.aws.client("cloudformation").describe_stack_resource(
            StackName=self._here.stack.name, LogicalResourceId=name
        )
        physical = resource["StackResourceDetail"]["PhysicalResourceId"]
        answer = self._here.aws.client("cloudwatch").describe_alarms(AlarmNames=[physical])
        (alarm,) = answer["MetricAlarms"]
        return dict(alarm)

    def _value(self, alarm: Alarm) -> float:
        dimensions = {item["Name"]: item["Value"] for item in alarm["Dimensions"]}
        match alarm["Namespace"], alarm["MetricName"]:
            case "onemail", metric:
                return sum(self._emitted(metric, dimensions))
            case "AWS/SQS", "ApproximateNumberOfMessagesVisible":
                return len(self._visible(dimensions["QueueName"]))
            case "AWS/SQS", "ApproximateAgeOfOldestMessage":
                ages = [time.time() - message["SentTimestamp"] for message in self._visible(dimensions["QueueName"])]
                return max(ages, default=0) * self._hurried
            case "AWS/Lambda", "FailedInvokeEventCount":
                return self._failed(dimensions["EventSourceMappingUUID"])
            case _:
                raise LookupError(f"{alarm['MetricName']} isn't there in the local cloud")

    def _visible(self, queue: str) -> list[dict[str, Any]]:
        url = self._here.aws.client("sqs").get_queue_url(QueueName=queue)["QueueUrl"]
        messages = self._here.aws.messages_on(url)
        return [message for message in messages if message["VisibleAt"] <= time.time()]

    def _failed(self, mapping: str) -> int:
        arn = self._here.aws.client("lambda").get_event_source_mapping(UUID=mapping)["FunctionArn"]
        function = arn.split(":function:")[1].split(":")[0]
        return sum(line.get("outcome") in FAILED for line in self._new_lines(self._functions()[function]))

    def _emitted(self, metric: str, dimensions: dict[str, str]) -> Iterator[float]:
        """The values of the metric with just these dimensions, as the embedded format has them."""
        for line in self._new_lines(self._functions()[dimensions["FunctionName"]]):
            for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
                named = metric in [item["Name"] for item in directive["Metrics"]]
                sets = [set(names) for names in directive["Dimensions"]]
                same = all(line.get(name) == value for name, value in dimensions.items())
                if named and same and set(dimensions) in sets and directive["Namespace"] == "onemail":
                    values = line[metric]
                    yield sum(values) if isinstance(values, list) else values

    def _functions(self) -> dict[str, str]:
        """Each function's log group."""
        stack = self._here.stack
        return {
            stack.notify_function: stack.notify_log_group,
            stack.feedback_function: stack.feedback_log_group,
            stack.cleanup_function: stack.cleanup_log_group,
        }

    def _new_lines(self, group: str) -> list[dict[str, Any]]:
        return self._lines(group)[self._since[group] :]

    def _lines(self, group: str) -> list[dict[str, Any]]:
        pages = self._here.aws.client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
        messages = [event["message"] for page in pages for event in page["events"]]
        return [json.loads(message) for message in messages if message.startswith("{")]
