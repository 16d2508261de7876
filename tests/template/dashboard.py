"""Checks of the dashboard and the saved query: that they show what is there, and all that matters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import source
from deployed import ROOT
from queues import ALL, equal
from watched import Watched

WITH_PROXY = ALL["proxy of a cluster"]
# With what a line of the log says of an event or a notification, beside the words and ids that name it.
TELLING = {"outcome", "reason", "code", "cause", "kind", "event_type", "receive_count"}
NAMING = {"event_id", "message_id", "ses_message_id"}


def widgets() -> list[dict[str, Any]]:
    found = json.loads(WITH_PROXY.properties("Dashboard")["DashboardBody"])["widgets"]
    return [widget["properties"] for widget in found if widget["type"] == "metric"]


def watched_by(widget: dict[str, Any]) -> Iterator[Watched]:
    """The widget's metrics, their dots and ellipses written out."""
    before: list[str] = []
    for metric in widget["metrics"]:
        if isinstance(metric[0], dict):
            yield searched(metric[0]["expression"])
            continue
        names = [item for item in metric if isinstance(item, str)]
        options: dict[str, Any] = next((item for item in metric if isinstance(item, dict)), {})
        if names and names[0] == "...":
            names = before[: len(before) - len(names) + 1] + names[1:]
        names = [before[index] if name == "." else name for index, name in enumerate(names)]
        before = names
        statistic = options.get("stat") or widget["stat"]
        yield Watched(names[0], names[1], dict(zip(names[2::2], names[3::2], strict=True)), statistic)


def searched(expression: str) -> Watched:
    schema, metric, function, statistic = re.search(
        r"\{(.*?)\} MetricName=\"(\w+)\" FunctionName=\"(.*?)\"', '(\w+)'", expression
    ).groups()  # type: ignore[union-attr]
    namespace, *dimensions = schema.split(",")
    equal(dimensions, ["FunctionName", "Reason"])
    return Watched(namespace, metric, {"FunctionName": function, "Reason": next(iter(source.reasons()))}, statistic)


def the_dashboard_shows_metrics_that_the_code_emits_or_aws_documents_and_statistics_that_mean_something() -> None:
    found = [watched for widget in widgets() for watched in watched_by(widget)]
    equal(len(found) > 20, True)
    for watched in found:
        watched.must_exist()


def the_dashboard_names_each_reason_of_what_fails() -> None:
    """In CloudWatch's words, which CloudFormation must leave alone."""
    metrics = [metric[0] for widget in widgets() for metric in widget["metrics"]]
    equal([metric["label"] for metric in metrics if isinstance(metric, dict)], ["${PROP('Dim.Reason')}"] * 2)


def the_first_graph_shows_each_way_in_which_an_event_ends() -> None:
    """Whatever happens to events, it isn't empty. A dead letter is counted as what it was refused or held for."""
    shown = [watched.metric for watched in watched_by(widgets()[0])]
    equal(sorted(shown), sorted(source.endings() - {"DeadLettered"}))


def each_region_has_a_dashboard_of_its_own() -> None:
    """Dashboards are the account's, in all its regions."""
    equal(ALL["secret"].properties("Dashboard")["DashboardName"], "onemail-eu-west-1")


def the_saved_query_asks_the_logs_that_tell_of_events_for_all_that_they_say() -> None:
    query = ALL["secret"].properties("WhatHappened")
    equal(query["LogGroupNames"], ["<NotifyLogGroup>", "<FeedbackLogGroup>"])
    fields, conditions, order = query["QueryString"].strip().split("\n")
    shown = set(fields.removeprefix("fields ").split(", "))
    equal(shown, TELLING | NAMING | {"@timestamp", "message"})
    equal(conditions, "| filter event_id = \"X\" or message_id = \"X\" or ses_message_id = \"X\"")
    equal(order, "| sort @timestamp asc")
    lines = "".join(path.read_text() for path in (ROOT / "src").rglob("line.rs"))
    equal([field for field in TELLING | NAMING if not re.search(rf"\b{field}\b", lines)], [])


CHECKS = [
    the_dashboard_shows_metrics_that_the_code_emits_or_aws_documents_and_statistics_that_mean_something,
    the_dashboard_names_each_reason_of_what_fails,
    the_first_graph_shows_each_way_in_which_an_event_ends,
    each_region_has_a_dashboard_of_its_own,
    the_saved_query_asks_the_logs_that_tell_of_events_for_all_that_they_say,
]
