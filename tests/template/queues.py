"""Checks of queues, mappings, functions and the schedule."""

from __future__ import annotations

import re

import variants
from deployed import PSEUDO, ROOT, SOURCE, Deployed

ALL = {name: Deployed(parameters) for name, parameters in variants.ALL.items()}
FOURTEEN_DAYS = 14 * 24 * 3600
# What holds something that is still needed when the stack is gone.
OUTLIVING = {"AWS::SQS::Queue", "AWS::SES::EmailIdentity"}


def equal(seen: object, expected: object) -> None:
    if seen != expected:
        raise AssertionError(f"expected {expected!r}, saw {seen!r}")


def mappings(deployed: Deployed) -> list[tuple[str, str, dict]]:
    """Each mapping's queue, function and properties."""
    found = []
    for mapping in deployed.of_type("AWS::Lambda::EventSourceMapping").values():
        properties = mapping["Properties"]
        queue = properties["EventSourceArn"].strip("<>").split(".")[0]
        # notify's is of its alias.
        function = properties["FunctionName"].strip("<>").replace("Aliaslive", "")
        found.append((queue, function, properties))
    return found


def a_queue_hides_a_message_for_six_times_its_functions_timeout() -> None:
    for deployed in ALL.values():
        for queue, function, properties in mappings(deployed):
            window = properties.get("MaximumBatchingWindowInSeconds", 0)
            least = 6 * deployed.properties(function)["Timeout"] + window
            equal(deployed.properties(queue)["VisibilityTimeout"] >= least, True)
    equal(len(mappings(ALL["secret"])), 2)


def a_message_is_delivered_five_times_at_the_least() -> None:
    equal(SOURCE["Parameters"]["MaxReceiveCount"]["MinValue"], 5)
    for deployed in ALL.values():
        for queue, _, _ in mappings(deployed):
            equal(int(deployed.properties(queue)["RedrivePolicy"]["maxReceiveCount"]) >= 5, True)


def every_mapping_takes_partial_answers_and_counts_what_they_name() -> None:
    for deployed in ALL.values():
        for _, _, properties in mappings(deployed):
            equal(properties["FunctionResponseTypes"], ["ReportBatchItemFailures"])
            equal(properties["MetricsConfig"], {"Metrics": ["EventCount"]})


def no_function_has_reserved_concurrency_and_every_mapping_has_a_limit() -> None:
    for deployed in ALL.values():
        for _, function, properties in mappings(deployed):
            equal("ReservedConcurrentExecutions" in deployed.properties(function), False)
            equal(int(properties["ScalingConfig"]["MaximumConcurrency"]) >= 2, True)


def no_mapping_filters_since_sqs_deletes_what_is_filtered_out() -> None:
    for deployed in ALL.values():
        equal([queue for queue, _, properties in mappings(deployed) if "FilterCriteria" in properties], [])


def every_queue_is_encrypted() -> None:
    for deployed in ALL.values():
        for queue in deployed.of_type("AWS::SQS::Queue").values():
            equal(queue["Properties"]["SqsManagedSseEnabled"], True)


def queues_and_the_identity_outlive_the_stack_unless_their_creation_fails() -> None:
    """What a failed creation left behind would be in the way of the next one. Nothing else is left behind."""
    for deployed in ALL.values():
        for name, resource in deployed.resources.items():
            # SAM's own, to which an alias may go back.
            if resource["Type"] == "AWS::Lambda::Version":
                continue
            kept = resource["Type"] in OUTLIVING
            policies = (resource.get("DeletionPolicy", "Delete"), resource.get("UpdateReplacePolicy", "Delete"))
            equal((name, *policies), (name, *(("RetainExceptOnCreate", "Retain") if kept else ("Delete", "Delete"))))


def every_queue_refuses_requests_without_tls() -> None:
    for deployed in ALL.values():
        refusing = set()
        for policy in deployed.of_type("AWS::SQS::QueuePolicy").values():
            statement = policy["Properties"]["PolicyDocument"]["Statement"][0]
            equal((statement["Effect"], statement["Principal"], statement["Action"]), ("Deny", "*", "sqs:*"))
            equal(statement["Condition"], {"Bool": {"aws:SecureTransport": "false"}})
            (queue,) = policy["Properties"]["Queues"]
            equal(statement["Resource"], queue.replace(">", ".Arn>"))
            refusing.add(queue.strip("<>"))
        equal(refusing, set(deployed.of_type("AWS::SQS::Queue")))


def dead_letters_are_kept_for_14_days_which_is_longer_than_they_may_have_waited() -> None:
    for deployed in ALL.values():
        for name, queue in deployed.of_type("AWS::SQS::Queue").items():
            if "RedrivePolicy" in queue["Properties"]:
                equal(queue["Properties"]["MessageRetentionPeriod"] * 2, FOURTEEN_DAYS)
            else:
                equal((name, queue["Properties"]["MessageRetentionPeriod"]), (name, FOURTEEN_DAYS))


def a_dead_letter_queue_admits_the_one_queue_that_names_it() -> None:
    account = f"{PSEUDO['AWS::Region']}:{PSEUDO['AWS::AccountId']}"
    for deployed in ALL.values():
        named = {}
        for queue in deployed.of_type("AWS::SQS::Queue").values():
            properties = queue["Properties"]
            if "RedrivePolicy" in properties:
                target = properties["RedrivePolicy"]["deadLetterTargetArn"].strip("<>").split(".")[0]
                named[target] = f"arn:aws:sqs:{account}:{properties['QueueName']}"
        for name, queue in deployed.of_type("AWS::SQS::Queue").items():
            if "RedrivePolicy" in queue["Properties"]:
                continue
            allowed = queue["Properties"]["RedriveAllowPolicy"]
            if name in named:
                equal(allowed, {"redrivePermission": "byQueue", "sourceQueueArns": [named[name]]})
            else:
                equal((name, allowed), (name, {"redrivePermission": "denyAll"}))


def events_notifications_subscription_and_schedule_have_dead_letter_queues_of_their_own() -> None:
    deployed = ALL["secret"]
    targets = [
        deployed.properties("EventsQueue")["RedrivePolicy"]["deadLetterTargetArn"],
        deployed.properties("FeedbackQueue")["RedrivePolicy"]["deadLetterTargetArn"],
        deployed.properties("FeedbackSubscription")["RedrivePolicy"]["deadLetterTargetArn"],
        deployed.properties("CleanupFunctionSchedule")["Target"]["DeadLetterConfig"]["Arn"],
    ]
    equal(len(set(targets)), 4)
    # The schedule's is for what Lambda didn't take; what failed inside it goes there too.
    (invoke,) = deployed.of_type("AWS::Lambda::EventInvokeConfig").values()
    equal(invoke["Properties"]["DestinationConfig"]["OnFailure"]["Destination"], targets[3])


def cleanup_runs_at_an_hour_of_each_day_and_not_when_the_stack_is_made() -> None:
    """A rate begins at once, before the first migration."""
    schedule = ALL["secret"].properties("CleanupFunctionSchedule")
    equal(re.fullmatch(r"cron\(\d+ \d+ \* \* \? \*\)", schedule["ScheduleExpression"]) is not None, True)
    equal((schedule.get("State", "ENABLED"), schedule["Target"]["Arn"]), ("ENABLED", "<CleanupFunction.Arn>"))


def a_cleanup_that_fails_or_is_not_taken_is_tried_again() -> None:
    deployed = ALL["secret"]
    equal(deployed.properties("CleanupFunctionSchedule")["Target"]["RetryPolicy"]["MaximumRetryAttempts"] > 0, True)
    (invoke,) = deployed.of_type("AWS::Lambda::EventInvokeConfig").values()
    equal((invoke["Properties"]["FunctionName"], invoke["Properties"]["MaximumRetryAttempts"]), ("<CleanupFunction>", 2))
    equal("The daily cleanup failed three times" in (ROOT / "docs" / "runbook.md").read_text(), True)


def a_fifo_queue_and_its_dead_letter_queue_are_both_fifo() -> None:
    fifo, standard = ALL["FIFO"], ALL["secret"]
    for name in ("EventsQueue", "DeadLetterQueue"):
        equal(fifo.properties(name)["FifoQueue"], True)
        equal(fifo.properties(name)["QueueName"].endswith(".fifo"), True)
        equal("FifoQueue" in standard.properties(name), False)
        equal(standard.properties(name)["QueueName"].endswith(".fifo"), False)
    equal([key for key in standard.properties("EventsQueue") if "Dedup" in key or "Fifo" in key], [])
    # SES's notifications come through a standard topic, which can't feed a FIFO queue.
    equal("FifoQueue" in fifo.properties("FeedbackQueue"), False)


def names_fit_where_aws_limits_them() -> None:
    stack = PSEUDO["AWS::StackName"]
    for deployed in ALL.values():
        for queue in deployed.of_type("AWS::SQS::Queue").values():
            name = queue["Properties"].get("QueueName", "")
            # With the longest stack name of which the template speaks.
            equal(len(name) - len(stack) + 34 <= 80, True)


def every_function_logs_json_to_a_group_of_its_own_with_a_retention() -> None:
    for deployed in ALL.values():
        groups = []
        for function in deployed.of_type("AWS::Lambda::Function").values():
            logging = function["Properties"]["LoggingConfig"]
            equal(logging["LogFormat"], "JSON")
            groups.append(logging["LogGroup"].strip("<>"))
        equal(sorted(groups), sorted(deployed.of_type("AWS::Logs::LogGroup")))
        for group in groups:
            equal(int(deployed.properties(group)["RetentionInDays"]) > 0, True)


CHECKS = [
    a_queue_hides_a_message_for_six_times_its_functions_timeout,
    a_message_is_delivered_five_times_at_the_least,
    every_mapping_takes_partial_answers_and_counts_what_they_name,
    no_function_has_reserved_concurrency_and_every_mapping_has_a_limit,
    no_mapping_filters_since_sqs_deletes_what_is_filtered_out,
    every_queue_is_encrypted,
    queues_and_the_identity_outlive_the_stack_unless_their_creation_fails,
    every_queue_refuses_requests_without_tls,
    dead_letters_are_kept_for_14_days_which_is_longer_than_they_may_have_waited,
    a_dead_letter_queue_admits_the_one_queue_that_names_it,
    events_notifications_subscription_and_schedule_have_dead_letter_queues_of_their_own,
    cleanup_runs_at_an_hour_of_each_day_and_not_when_the_stack_is_made,
    a_cleanup_that_fails_or_is_not_taken_is_tried_again,
    a_fifo_queue_and_its_dead_letter_queue_are_both_fifo,
    names_fit_where_aws_limits_them,
    every_function_logs_json_to_a_group_of_its_own_with_a_retention,
]
