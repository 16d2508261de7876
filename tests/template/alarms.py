"""Checks of alarms: what they watch exists and moves, they ring when they should, and each has its section in the runbook."""

from __future__ import annotations

import re
from collections.abc import Iterator

import documented
import source
import variants
from deployed import ROOT, Deployed
from queues import ALL, equal
from ringing import RINGS
from watched import COUNTING, Watched

RUNBOOK = ROOT / "docs" / "runbook.md"
TELLING = ALL["alarms that tell"]
WITH_PROXY = ALL["proxy of a cluster"]


def alarms(deployed: Deployed) -> dict[str, dict]:
    return {name: alarm["Properties"] for name, alarm in deployed.of_type("AWS::CloudWatch::Alarm").items()}


def watched_by_alarms() -> Iterator[Watched]:
    for properties in alarms(WITH_PROXY).values():
        # The account's own metrics have none.
        dimensions = {item["Name"]: item["Value"] for item in properties.get("Dimensions", [])}
        statistic = properties.get("Statistic") or properties["ExtendedStatistic"]
        yield Watched(properties["Namespace"], properties["MetricName"], dimensions, statistic)


def watched_reasons(metric: str) -> set[str]:
    return {watched.dimensions["Reason"] for watched in watched_by_alarms() if watched.metric == metric}


def every_alarm_watches_what_the_code_emits_or_aws_documents_by_a_statistic_that_means_something() -> None:
    found = list(watched_by_alarms())
    equal(len(found) > 20, True)
    for watched in found:
        watched.must_exist()


def every_alarm_rings_when_its_table_says() -> None:
    found = alarms(WITH_PROXY)
    equal(set(found), set(RINGS))
    for name, properties in found.items():
        when = RINGS[name]
        seen = [properties[key] for key in ("ComparisonOperator", "Threshold", "Period", "EvaluationPeriods", "TreatMissingData")]
        equal((name, seen), (name, [when.operator, when.threshold, when.period, when.periods, when.missing]))
        # So many out of so many: all of them.
        equal((name, properties.get("DatapointsToAlarm", when.periods)), (name, when.periods))


def what_each_host_tells_once_a_minute_is_added_up_by_the_minute() -> None:
    for properties in alarms(WITH_PROXY).values():
        metric = documented.METRICS.get((properties["Namespace"], properties["MetricName"]))
        if metric is not None and metric.statistics is documented.GAUGED_BY_HOST:
            equal(properties["Period"], 60)


def the_accounts_own_reputation_has_alarms_beside_the_configuration_sets() -> None:
    """SES pauses the account, whoever of it sent; and a configuration set that others made may not tell."""
    for metric in ("Reputation.BounceRate", "Reputation.ComplaintRate"):
        found = [set(watched.dimensions) for watched in watched_by_alarms() if watched.metric == metric]
        equal(found, [{"ses:configuration-set"}, set()])


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
    # Held isn't refused: it has a metric of its own, and the alarm EventsHeld.
    equal(watched_reasons("Refused"), reasons - {"held"})


def every_function_that_holds_has_an_alarm_on_it() -> None:
    """notify and cleanup count Held, each under its own name, and neither's alarm sees the other's."""
    holding = {name for name, function in COUNTING.items() if "Held" in source.metrics_of(function)}
    watched = {watched.dimensions["FunctionName"] for watched in watched_by_alarms() if watched.metric == "Held"}
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


def every_alarm_tells_the_topic_if_there_is_one() -> None:
    for name, properties in alarms(TELLING).items():
        topic = [variants.RECOMMENDED["alarms that tell"]["AlarmTopicArn"]]
        equal((name, properties["AlarmActions"], properties["OKActions"]), (name, topic, topic))
    for properties in alarms(ALL["secret"]).values():
        equal("AlarmActions" in properties, False)


def the_duration_alarm_rings_at_four_fifths_of_the_timeout() -> None:
    deployed = ALL["secret"]
    equal(deployed.properties("NotifySlow")["Threshold"], 0.8 * 1000 * deployed.properties("NotifyFunction")["Timeout"])


def notifications_are_late_before_the_event_comes_again() -> None:
    """FeedbackWaiting must ring within what the queue itself would hold an event back for twice."""
    deployed = ALL["secret"]
    equal(deployed.properties("FeedbackWaiting")["Threshold"] <= 2 * deployed.properties("EventsQueue")["VisibilityTimeout"], True)


def the_readmes_bill_counts_each_alarm() -> None:
    many = len(alarms(ALL["secret"]))
    equal(f"{many} alarms {many / 10:.2f}," in (ROOT / "README.md").read_text(), True)


CHECKS = [
    every_alarm_watches_what_the_code_emits_or_aws_documents_by_a_statistic_that_means_something,
    every_alarm_rings_when_its_table_says,
    what_each_host_tells_once_a_minute_is_added_up_by_the_minute,
    the_accounts_own_reputation_has_alarms_beside_the_configuration_sets,
    every_dead_letter_queue_has_an_alarm_on_what_lies_in_it,
    every_reason_for_which_an_event_can_never_be_sent_has_an_alarm,
    every_function_that_holds_has_an_alarm_on_it,
    every_alarm_says_what_to_do_and_points_to_its_section_of_the_runbook,
    each_section_of_the_runbook_says_what_it_means_how_to_look_and_what_to_do,
    every_alarm_tells_the_topic_if_there_is_one,
    the_readmes_bill_counts_each_alarm,
    the_duration_alarm_rings_at_four_fifths_of_the_timeout,
    notifications_are_late_before_the_event_comes_again,
]
