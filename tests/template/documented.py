"""The metrics of AWS that the template watches, as AWS documents them: with which dimensions, and which statistics of them
mean something.

What isn't here isn't watched. On purpose it lacks NumberOfMessagesSent, which doesn't count what a redrive policy moves
into a dead-letter queue.
"""

from __future__ import annotations

from dataclasses import dataclass

Dimensions = frozenset[str]


@dataclass(frozen=True)
class Metric:
    dimensions: set[Dimensions]
    statistics: set[str]


def _by(*names: str) -> Dimensions:
    return frozenset(names)


# A count comes in many parts, of which a minimum or a mean says nothing.
COUNTED = {"Sum"}
# A queue tells its own length and age once a minute.
GAUGED = {"Maximum"}
TIMED = {"p50", "p95", "p99"}
# Each host of a proxy tells its own number once a minute; only together they are the proxy's.
GAUGED_BY_HOST = {"Sum"}

_QUEUE = Metric({_by("QueueName")}, GAUGED)
# The configuration set's, where its ReputationMetricsEnabled is true:
# https://docs.aws.amazon.com/ses/latest/dg/monitoring-sender-reputation-pausing-configuration-set.html; and the account's:
# https://docs.aws.amazon.com/ses/latest/dg/reputationdashboard-cloudwatch-alarm.html
_REPUTATION = Metric({_by("ses:configuration-set"), _by()}, GAUGED)

METRICS: dict[tuple[str, str], Metric] = {
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): _QUEUE,
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"): _QUEUE,
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): _QUEUE,
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    ("AWS/Lambda", "Errors"): Metric({_by("FunctionName"), _by("FunctionName", "Resource", "ExecutedVersion")}, COUNTED),
    ("AWS/Lambda", "Throttles"): Metric({_by("FunctionName")}, COUNTED),
    ("AWS/Lambda", "Duration"): Metric({_by("FunctionName")}, TIMED),
    ("AWS/Lambda", "ConcurrentExecutions"): Metric({_by("FunctionName")}, GAUGED),
    # Only where the mapping's MetricsConfig asks for EventCount. Counts every record that an answer names.
    ("AWS/Lambda", "FailedInvokeEventCount"): Metric({_by("EventSourceMappingUUID")}, COUNTED),
    ("AWS/SES", "Reputation.BounceRate"): _REPUTATION,
    ("AWS/SES", "Reputation.ComplaintRate"): _REPUTATION,
    # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-proxy.monitoring.html
    ("AWS/RDS", "DatabaseConnectionsCurrentlySessionPinned"): Metric({_by("ProxyName")}, GAUGED_BY_HOST),
}
