"""Checks of the way back from SES: configuration set, destination, topic, subscription, queue."""

from __future__ import annotations

from typing import Any

import source
from deployed import Deployed
from queues import ALL, equal

# These need pixels and rewritten links in the emails.
TRACKING = {"open", "click"}


def ses_tells_of_each_email_that_it_took_and_what_became_of_it() -> None:
    (destination,) = ALL["secret"].of_type("AWS::SES::ConfigurationSetEventDestination").values()
    told = destination["Properties"]["EventDestination"]
    equal(set(told["MatchingEventTypes"]), source.tells_of() - TRACKING)
    equal((told["Enabled"], told["SnsDestination"]), (True, {"TopicARN": "<FeedbackTopic>"}))
    equal(destination["Properties"]["ConfigurationSetName"], "<ConfigurationSet>")


def only_ses_and_only_for_our_configuration_set_publishes_to_the_topic() -> None:
    (policy,) = ALL["secret"].of_type("AWS::SNS::TopicPolicy").values()
    equal(policy["Properties"]["Topics"], ["<FeedbackTopic>"])
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    equal(
        {key: value for key, value in statement.items() if key != "Sid"},
        {
            "Effect": "Allow",
            "Principal": {"Service": "ses.amazonaws.com"},
            "Action": "sns:Publish",
            "Resource": "<FeedbackTopic>",
            "Condition": {
                "StringEquals": {"aws:SourceAccount": "123456789012"},
                "ArnEquals": {"aws:SourceArn": "arn:aws:ses:eu-west-1:123456789012:configuration-set/<ConfigurationSet>"},
            },
        },
    )


def what_ses_says_comes_to_feedbacks_queue_as_it_was_said() -> None:
    (subscription,) = ALL["secret"].of_type("AWS::SNS::Subscription").values()
    equal(
        subscription["Properties"],
        {
            "TopicArn": "<FeedbackTopic>",
            "Protocol": "sqs",
            "Endpoint": "<FeedbackQueue.Arn>",
            "RawMessageDelivery": True,
            "RedrivePolicy": {"deadLetterTargetArn": "<SubscriptionDeadLetterQueue.Arn>"},
        },
    )


def admitted(deployed: Deployed) -> dict[str, list[Any]]:
    """Whom each queue's policy admits: principal, action, and on whose behalf."""
    found = {}
    for policy in deployed.of_type("AWS::SQS::QueuePolicy").values():
        (queue,) = policy["Properties"]["Queues"]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                equal(statement["Resource"], queue.replace(">", ".Arn>"))
                who = (statement["Principal"], statement["Action"], statement["Condition"])
                found.setdefault(queue.strip("<>"), []).append(who)
    return found


def queues_admit_our_topic_and_the_producers_that_are_named_and_nobody_else() -> None:
    ours = ({"Service": "sns.amazonaws.com"}, "sqs:SendMessage", {"ArnEquals": {"aws:SourceArn": "<FeedbackTopic>"}})
    by_topic = {"FeedbackQueue": [ours], "SubscriptionDeadLetterQueue": [ours]}
    for deployed in ALL.values():
        if deployed is not ALL["producers"]:
            equal(admitted(deployed), by_topic)
    producers = (
        {"Service": ["sns.amazonaws.com", "events.amazonaws.com"]},
        "sqs:SendMessage",
        {"ArnEquals": {"aws:SourceArn": ["arn:aws:sns:eu-west-1:123456789012:orders"]}},
    )
    equal(admitted(ALL["producers"]), {**by_topic, "EventsQueue": [producers]})


def policies_of(deployed: Deployed, kind: str, list_of: str, target: str) -> list[str]:
    """The names of the policies of this queue or topic."""
    found = deployed.of_type(kind).items()
    return [name for name, policy in found if f"<{target}>" in policy["Properties"][list_of]]


def nothing_is_sent_before_its_way_is_open() -> None:
    """A subscription before its queues' policies is refused by them, a destination before a subscription heard by nobody."""
    deployed = ALL["secret"]
    for subscription in deployed.of_type("AWS::SNS::Subscription").values():
        properties = subscription["Properties"]
        for arn in (properties["Endpoint"], properties["RedrivePolicy"]["deadLetterTargetArn"]):
            needed = policies_of(deployed, "AWS::SQS::QueuePolicy", "Queues", arn.strip("<>").removesuffix(".Arn"))
            equal((arn, len(needed), set(needed) <= set(subscription["DependsOn"])), (arn, 1, True))
    (destination,) = deployed.of_type("AWS::SES::ConfigurationSetEventDestination").values()
    needed = policies_of(deployed, "AWS::SNS::TopicPolicy", "Topics", "FeedbackTopic")
    equal(set(destination["DependsOn"]), {*needed, *deployed.of_type("AWS::SNS::Subscription")})


CHECKS = [
    ses_tells_of_each_email_that_it_took_and_what_became_of_it,
    only_ses_and_only_for_our_configuration_set_publishes_to_the_topic,
    what_ses_says_comes_to_feedbacks_queue_as_it_was_said,
    queues_admit_our_topic_and_the_producers_that_are_named_and_nobody_else,
    nothing_is_sent_before_its_way_is_open,
]
