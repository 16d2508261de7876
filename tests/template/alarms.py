"""Checks of alarms and dashboard: what they watch exists and moves, and each alarm has its section in the runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import documented
import source
import variants
from deployed import ROOT, Deployed
from queues import ALL, equal

RUNBOOK = ROOT / "docs" / "runbook.md"
TELLING = ALL["alarms that tell"]
WITH_PROXY = ALL["proxy of a cluster"]
# The functions of which the code counts something.
COUNTING = {"<NotifyFunction>": "notify", "<FeedbackFunction>": "feedback", "<CleanupFunction>": "cleanup"}

Watched = tuple[str, str, dict[str, str]]


def alarms(deployed: Deployed) -> dict[str, dict]:
    return {name: alarm["Properties"] for name, alarm in deployed.of_type("AWS::CloudWatch::Alarm").items()}


def watched_by_alarms() -> Iterator[Watched]:
    for properties in alarms(WITH_PROXY).values():
        dimensions = {item["Name"]: item["Value"] for item in properties["Dimensions"]}
        yield properties["Namespace"], properties["MetricName"], dimensions


def watched_by_the_dashboard() -> Iterator[Watched]:
    """The metrics of all widgets, their dots and ellipses written out."""
    body = json.loads(WITH_PROXY.properties("Dashboard")["DashboardBody"])
    for widget in body["widgets"]:
        before: list[str] = []
        for metric in widget["properties"].get("metrics", []):
            if isinstance(metric[0], dict):
                yield searched(metric[0]["expression"])
                continue
            names = [item for item in metric if isinstance(item, str)]
            if names and names[0] == "...":
                names = before[: len(before) - len(names) + 1] + names[1:]
            names = [before[index] if name == "." else name for index, name in enumerate(names)]
            before = names
            yield names[0], names[1], dict(zip(names[2::2], names[3::2], strict=True))


def searched(expression: str) -> Watched:
    schema, metric, function = re.search(
        r"\{(.*?)\} MetricName=\"(\w+)\" FunctionName=\"(.*?)\"", expression
    ).groups()  # type: ignore[union-attr]
    namespace, *dimensions = schema.split(",")
    equal(dimensions, ["FunctionName", "Reason"])
    return namespace, metric, {"FunctionName": function, "Reason": next(iter(source.reasons()))}


def must_exist(watched: Watched) -> None:
    namespace, metric, dimensions = watched
    if namespace != "onemail":
        equal((metric, frozenset(dimensions) in documented.METRICS[namespace, metric]), (metric, True))
        return
    function = COUNTING[dimensions["FunctionName"]]
    equal((metric, function, metric in source.metrics_of(function)), (metric, function, True))
    if "Reason" in dimensions:
        equal((metric, metric in source.BY_REASON), (metric, True))
        equal((dimensions["Reason"], dimensions["Reason"] in source.reasons()), (dimensions["Reason"], True))
    equal(set(dimensions) <= {"FunctionName", "Reason"}, True)


def every_alarm_watches_a_metric_that_the_code_emits_or_aws_documents() -> None:
    found = list(watched_by_alarms())
    equal(len(found) > 20, True)
    for watched in found:
        must_exist(watched)


def the_dashboard_shows_metrics_that_the_code_emits_or_aws_documents() -> None:
    found = list(watched_by_the_dashboard())
    equal(len(found) > 20, True)
    for watched in found:
        must_exist(watched)


def the_dashboard_names_each_reason_of_what_fails() -> None:
    """In CloudWatch's words, which CloudFormation must leave alone."""
    body = json.loads(WITH_PROXY.properties("Dashboard")["DashboardBody"])
    metrics = [metric[0] for widget in body["widgets"] for metric in widget["properties"].get("metrics", [])]
    equal([metric["label"] for metric in metrics if isinstance(metric, dict)], ["${PROP('Dim.Reason')}"] * 2)


def every_dead_letter_queue_has_an_alarm_on_what_lies_in_it() -> None:
    names = {
        properties["Dimensions"][0]["Value"]
        for properties in alarms(ALL["secret"]).values()
        if properties["MetricName"] == "ApproximateNumberOfMessagesVisible"
    }
    dead = [
        queue["Properties"].get("QueueName", f"<{name}.QueueName>")
        for name, queue in ALL["secret"].of_type("AWS::SQS::Queue").items()
        if "RedrivePolicy" not in queue["Properties"]
    ]
    equal(names, set(dead))


def every_reason_for_which_an_event_can_never_be_sent_has_an_alarm() -> None:
    text = (ROOT / "src" / "notify" / "outcome.rs").read_text()
    refusal = text[text.index("impl Refusal") : text.index("impl Release")]
    reasons = set(re.findall(r'=> "([a-z_]+)"', refusal))
    watched = {dimensions["Reason"] for _, metric, dimensions in watched_by_alarms() if metric == "Refused"}
    # Held isn't refused: it has a metric of its own, and the alarm EventsHeld.
    equal(watched, reasons - {"held"})


def every_function_that_holds_has_an_alarm_on_it() -> None:
    """notify and cleanup count Held, each under its own name, and neither's alarm sees the other's."""
    holding = {name for name, function in COUNTING.items() if "Held" in source.metrics_of(function)}
    watched = {dimensions["FunctionName"] for _, metric, dimensions in watched_by_alarms() if metric == "Held"}
    equal(watched, holding)


def every_alarm_says_what_to_do_and_points_to_its_section_of_the_runbook() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    for name, properties in alarms(WITH_PROXY).items():
        description = properties["AlarmDescription"]
        equal((name, description.endswith(f"docs/runbook.md#{name.lower()}")), (name, True))
        equal((name, len(description.split(". ")) >= 2), (name, True))
        # CloudWatch takes no more.
        equal(len(description) <= 1024, True)
    equal(sorted(sections), sorted(alarms(WITH_PROXY)))


def each_section_of_the_runbook_says_what_it_means_how_to_look_and_what_to_do() -> None:
    sections = re.split(r"^## (?=\w+$)", RUNBOOK.read_text(), flags=re.MULTILINE)[1:]
    for section in sections:
        name = section.split("\n", 1)[0]
        for part in ("**Means.**", "**Look.**", "**Do.**"):
            equal((name, part, part in section), (name, part, True))


def every_alarm_says_what_missing_data_means_and_tells_the_topic_if_there_is_one() -> None:
    for name, properties in alarms(TELLING).items():
        equal((name, properties["TreatMissingData"] in ("notBreaching", "ignore")), (name, True))
        topic = [variants.RECOMMENDED["alarms that tell"]["AlarmTopicArn"]]
        equal((properties["AlarmActions"], properties["OKActions"]), (topic, topic))
    for properties in alarms(ALL["secret"]).values():
        equal("AlarmActions" in properties, False)


def the_duration_alarm_rings_at_four_fifths_of_the_timeout() -> None:
    deployed = ALL["secret"]
    equal(deployed.properties("NotifySlow")["Threshold"], 0.8 * 1000 * deployed.properties("NotifyFunction")["Timeout"])


def notifications_are_late_before_the_event_comes_again() -> None:
    """FeedbackWaiting must ring within what the queue itself would hold an event back for twice."""
    deployed = ALL["secret"]
    equal(deployed.properties("FeedbackWaiting")["Threshold"] <= 2 * deployed.properties("EventsQueue")["VisibilityTimeout"], True)


def the_saved_query_asks_the_logs_that_tell_of_events() -> None:
    query = ALL["secret"].properties("WhatHappened")
    equal(query["LogGroupNames"], ["<NotifyLogGroup>", "<FeedbackLogGroup>"])
    lines = "".join(path.read_text() for path in (ROOT / "src").rglob("line.rs"))
    fields = query["QueryString"].split("\n")[0].removeprefix("fields ").split(", ")
    # Those that are written with each line by the logging itself.
    own = {"@timestamp", "message"}
    equal([field for field in fields if field not in own and not re.search(rf"\b{field}\b", lines)], [])


CHECKS = [
    every_alarm_watches_a_metric_that_the_code_emits_or_aws_documents,
    the_dashboard_shows_metrics_that_the_code_emits_or_aws_documents,
    the_dashboard_names_each_reason_of_what_fails,
    every_dead_letter_queue_has_an_alarm_on_what_lies_in_it,
    every_reason_for_which_an_event_can_never_be_sent_has_an_alarm,
    every_function_that_holds_has_an_alarm_on_it,
    every_alarm_says_what_to_do_and_points_to_its_section_of_the_runbook,
    each_section_of_the_runbook_says_what_it_means_how_to_look_and_what_to_do,
    every_alarm_says_what_missing_data_means_and_tells_the_topic_if_there_is_one,
    the_duration_alarm_rings_at_four_fifths_of_the_timeout,
    notifications_are_late_before_the_event_comes_again,
    the_saved_query_asks_the_logs_that_tell_of_events,
]
