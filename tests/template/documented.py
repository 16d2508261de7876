"""The metrics of AWS that the template watches, with their dimensions, as AWS documents them.

What isn't here isn't watched. On purpose it lacks NumberOfMessagesSent, which doesn't count what a redrive policy moves
into a dead-letter queue.
"""

from __future__ import annotations

Dimensions = frozenset[str]


def _by(*names: str) -> Dimensions:
    return frozenset(names)


METRICS: dict[tuple[str, str], set[Dimensions]] = {
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): {_by("QueueName")},
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"): {_by("QueueName")},
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): {_by("QueueName")},
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    ("AWS/Lambda", "Errors"): {_by("FunctionName"), _by("FunctionName", "Resource", "ExecutedVersion")},
    ("AWS/Lambda", "Throttles"): {_by("FunctionName")},
    ("AWS/Lambda", "Duration"): {_by("FunctionName")},
    ("AWS/Lambda", "ConcurrentExecutions"): {_by("FunctionName")},
    # Only where the mapping's MetricsConfig asks for EventCount. Counts every record that an answer names.
    ("AWS/Lambda", "FailedInvokeEventCount"): {_by("EventSourceMappingUUID")},
    # https://docs.aws.amazon.com/ses/latest/dg/reputationdashboardmessages.html; by configuration set where its
    # ReputationMetricsEnabled is true.
    ("AWS/SES", "Reputation.BounceRate"): {_by("ses:configuration-set")},
    ("AWS/SES", "Reputation.ComplaintRate"): {_by("ses:configuration-set")},
    # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-proxy.monitoring.html
    ("AWS/RDS", "DatabaseConnectionsCurrentlySessionPinned"): {_by("ProxyName")},
}
