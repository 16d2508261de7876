"""Checks of the parameters: that each choice has its effect, and that the sums in their descriptions are right."""

from __future__ import annotations

import sys
from typing import Any

import source
import variants
from deployed import ROOT, SOURCE, Deployed, Refused
from queues import ALL, equal, mappings

sys.path.insert(0, str(ROOT / "local"))

import samconfig

# Another value for each parameter that may be changed on a running stack.
OTHER_VALUES: dict[str, str] = {
    "DatabaseSecretArn": variants.SECRET + "x",
    "DatabaseSecretKeyArn": variants.KEY,
    "DatabaseSslMode": "require",
    "MigrationSecretArn": variants.SECRET + "y",
    # Without that secret it has no effect.
    "MigrationSecretKeyArn": variants.KEY + "9",
    # Without subnets it has no effect.
    "SecurityGroupIds": "sg-1",
    "MailFrom": "no-reply@example.org",
    "MailReplyTo": "help@example.com",
    "CreateSesIdentity": "true",
    "SesIdentity": "*",
    "SesConfigurationSet": "ours",
    "SesMaxSendRate": "3",
    "SesEndpointUrl": "https://ses.example.com",
    "RecipientAllowList": "@example.com",
    "SendingEnabled": "false",
    "ClaimMode": "lease",
    "InDoubtWait": "60",
    "MaximumConcurrency": "7",
    "MaxInFlight": "5",
    "MaxReceiveCount": "6",
    "Fifo": "true",
    "ProducerArns": "arn:aws:sns:eu-west-1:123456789012:orders",
    "Architecture": "x86_64",
    "MemorySize": "512",
    "Deployment": "Canary10Percent5Minutes",
    "Tracing": "Active",
    "LogLevel": "DEBUG",
    "LogRetentionDays": "60",
    "RetentionDays": "60",
    "AlarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:alarms",
}
# Those that another must go with, and so are changed from another beginning.
FROM = {
    "DatabaseUrl": (variants.BY_TOKEN, "postgres://other@db.example.com:5432/jobs"),
    "DatabaseResourceId": (variants.BY_TOKEN, "db-ABCDEF"),
    "DatabaseUrlSecretArn": (variants.BY_URL_SECRET, variants.SECRET + "z"),
    "RecipientRedirect": ({**variants.BY_SECRET, "RecipientAllowList": "@example.com"}, "us@example.com"),
    "InDoubt": ({**variants.BY_SECRET, "ClaimMode": "lease"}, "hold"),
    "ProxyDatabaseInstance": ({**variants.BY_PROXY, "ProxyDatabaseCluster": "", "ProxyDatabaseInstance": "a"}, "b"),
    "ProxyDatabaseCluster": (variants.BY_PROXY, "other"),
    "SubnetIds": ({**variants.BY_SECRET, "SecurityGroupIds": "sg-1"}, "subnet-1,subnet-2"),
    "CreateVpcEndpoints": ({**variants.BY_SECRET, **variants.NETWORK}, "true"),
    "VpcId": ({**variants.BY_SECRET, **variants.NETWORK}, "vpc-00000000"),
}


def content(deployed: Deployed) -> tuple[Any, Any]:
    """What the version of notify is made of, and what its number is made of."""
    function = {**deployed.properties("NotifyFunction"), "Code": None}
    if function["Environment"]["Variables"]["DEAD_LETTER_QUEUE_URL"] == "<DeadLetterQueue>":
        function["queue"] = deployed.properties("DeadLetterQueue")["QueueName"]
    return function, deployed.properties("Settings")["Content"]


def a_changed_parameter_publishes_a_version_just_when_it_changes_the_function() -> None:
    """Lambda refuses to publish a version of what hasn't changed, and SAM doesn't see that a value has."""
    cases = {name: (variants.BY_SECRET, value) for name, value in OTHER_VALUES.items()} | FROM
    equal(set(cases), set(SOURCE["Parameters"]))
    for name, (before, value) in cases.items():
        function_before, settings_before = content(Deployed(before))
        function_after, settings_after = content(Deployed({**before, name: value}))
        changed = (function_before != function_after, settings_before != settings_after)
        equal((name, changed[0]), (name, changed[1]))
    version = next(iter(ALL["secret"].of_type("AWS::Lambda::Version").values()))
    equal(version["Properties"]["Description"], "settings <Settings.VersionNumber>")


def other_security_groups_publish_a_version_inside_a_vpc() -> None:
    before = {**variants.BY_SECRET, **variants.NETWORK}
    equal(content(Deployed({**before, "SecurityGroupIds": "sg-3"}))[1] != content(Deployed(before))[1], True)


def another_server_beside_the_secret_publishes_a_version_too() -> None:
    with_url = {**variants.BY_SECRET, "DatabaseUrl": "postgres://db.example.com:5432/jobs"}
    equal(content(Deployed(with_url))[1] != content(Deployed(variants.BY_SECRET))[1], True)
    variables = Deployed(with_url).properties("NotifyFunction")["Environment"]["Variables"]
    equal((variables["DATABASE_SECRET_ARN"], variables["DATABASE_IAM_AUTH"]), (variants.SECRET, "false"))


def with_another_proxy_user_a_version_is_published_too() -> None:
    other = {**variants.BY_PROXY, "DatabaseUrl": "postgres://other@db.example.com:5432/jobs"}
    equal(content(Deployed(other))[1] != content(Deployed(variants.BY_PROXY))[1], True)
    elsewhere = {**variants.BY_PROXY, "DatabaseUrl": "postgres://onemail@db2.example.com:5432/jobs"}
    equal(content(Deployed(elsewhere)), content(Deployed(variants.BY_PROXY)))


def connections(parameters: dict[str, str]) -> int:
    """The most database connections that the stack opens."""
    deployed = Deployed({**variants.BY_SECRET, **parameters})
    variables = deployed.properties("NotifyFunction")["Environment"]["Variables"]
    notify = deployed.properties("NotifyFunctionQueue")
    feedback = deployed.properties("FeedbackFunctionQueue")
    for_each = 1 if variables["CLAIM_MODE"] == "lease" else min(int(variables["MAX_IN_FLIGHT"]), notify["BatchSize"])
    return (
        int(notify["ScalingConfig"]["MaximumConcurrency"]) * for_each
        + feedback["ScalingConfig"]["MaximumConcurrency"] * source.connections("feedback")
        + source.connections("cleanup")
        + source.connections("migrate")
    )


def the_sum_of_connections_is_what_the_parameter_says() -> None:
    description = SOURCE["Parameters"]["MaximumConcurrency"]["Description"]
    equal("MaximumConcurrency x the lesser of MaxInFlight and 10" in description, True)
    others = [source.connections(function) for function in ("feedback", "cleanup", "migrate")]
    equal("(feedback 2 x {}, cleanup {}, migrate {})".format(*others) in description, True)
    equal("and 11 for the others" in description, True)
    equal("With the defaults 61." in description, True)
    equal(connections({}), 61)
    equal(connections({"ClaimMode": "lease"}), 16)
    readme = (ROOT / "README.md").read_text()
    equal("open up to 61 database connections, and 122 while" in readme, True)
    equal("`MaximumConcurrency` x `MaxInFlight` + 11 connections" in readme, True)
    equal("`ClaimMode=lease`, which needs 16, and 32 meanwhile" in readme, True)
    equal(connections({"MaximumConcurrency": "20", "MaxInFlight": "30"}), 211)


def the_rate_of_all_copies_is_what_the_parameter_says() -> None:
    """An account of 14 a second and five copies: 2.8 for each."""
    equal("(14 a second and 5 copies: 2.8)" in SOURCE["Parameters"]["SesMaxSendRate"]["Description"], True)
    deployed = Deployed({**variants.BY_SECRET, "SesMaxSendRate": "2.8"})
    rate = float(deployed.properties("NotifyFunction")["Environment"]["Variables"]["SES_MAX_SEND_RATE"])
    copies = int(deployed.properties("NotifyFunctionQueue")["ScalingConfig"]["MaximumConcurrency"])
    equal(round(rate * copies, 6), 14)


def the_switch_stops_notify_and_not_feedback() -> None:
    deployed = Deployed({**variants.BY_SECRET, "SendingEnabled": "false"})
    equal(str(deployed.properties("NotifyFunctionQueue")["Enabled"]).lower(), "false")
    equal(deployed.properties("FeedbackFunctionQueue")["Enabled"], True)


def a_gradual_deployment_has_alarms_and_one_at_once_has_none() -> None:
    (group,) = ALL["canary"].of_type("AWS::CodeDeploy::DeploymentGroup").values()
    watched = [alarm["Name"] for alarm in group["Properties"]["AlarmConfiguration"]["Alarms"]]
    equal(watched, ["<NewVersionErrors>", "<NotifySetupErrors>"])
    equal(group["Properties"]["DeploymentConfigName"], "CodeDeployDefault.LambdaCanary10Percent5Minutes")
    (group,) = ALL["secret"].of_type("AWS::CodeDeploy::DeploymentGroup").values()
    equal(group["Properties"]["AlarmConfiguration"], {})
    equal(group["Properties"]["DeploymentConfigName"], "CodeDeployDefault.LambdaAllAtOnce")


def the_queue_calls_the_alias_and_not_whatever_was_uploaded_last() -> None:
    equal(ALL["secret"].properties("NotifyFunctionQueue")["FunctionName"], "<NotifyFunctionAliaslive>")


def ses_sends_with_tls_and_suppresses_who_bounced_or_complained() -> None:
    properties = ALL["secret"].properties("ConfigurationSet")
    equal(properties["DeliveryOptions"], {"TlsPolicy": "REQUIRE"})
    equal(properties["ReputationOptions"], {"ReputationMetricsEnabled": True})
    equal(properties["SuppressionOptions"], {"SuppressedReasons": ["BOUNCE", "COMPLAINT"]})
    # No pixels, no rewritten links.
    equal("TrackingOptions" in properties, False)


def an_identity_of_the_stack_gives_its_dkim_records() -> None:
    records = [name for name in ALL["identity"].outputs if name.startswith("DkimRecord")]
    equal((len(records), ALL["identity"].properties("EmailIdentity")["EmailIdentity"]), (3, "example.com"))
    equal([name for name in ALL["secret"].outputs if name.startswith("DkimRecord")], [])


def what_contradicts_itself_is_refused() -> None:
    contradictions = [
        variants.MAIL,
        {**variants.BY_TOKEN, "DatabaseSecretArn": variants.SECRET},
        {**variants.BY_SECRET, "DatabaseUrlSecretArn": variants.SECRET},
        {**variants.BY_SECRET, "DatabaseResourceId": "db-ABC"},
        {**variants.BY_TOKEN, "ProxyDatabaseInstance": "jobs"},
        {**variants.BY_PROXY, "ProxyDatabaseInstance": "jobs"},
        {**variants.BY_SECRET, "RecipientRedirect": "us@example.com"},
        {**variants.BY_SECRET, "InDoubt": "hold"},
        {**variants.BY_SECRET, "CreateSesIdentity": "true", "SesIdentity": "example.com"},
        {**variants.BY_SECRET, "RecipientAllowList": "@example.com, sam@example.org"},
        {**variants.BY_SECRET, "RecipientAllowList": "*@example.com"},
        {**variants.BY_SECRET, "RetentionDays": "27"},
        {**variants.BY_SECRET, "MaxReceiveCount": "4"},
    ]
    for parameters in contradictions:
        try:
            Deployed(parameters)
        except Refused:
            continue
        raise AssertionError(f"{parameters} were taken")


def the_ledger_remembers_an_event_for_as_long_as_sqs_can_bring_it_back() -> None:
    """On the queue, then as a dead letter, and after a redrive, which starts anew, on the queue again."""
    parameter = SOURCE["Parameters"]["RetentionDays"]
    for deployed in ALL.values():
        for queue, _, _ in mappings(deployed):
            kept = deployed.properties(queue)["MessageRetentionPeriod"]
            arn = deployed.properties(queue)["RedrivePolicy"]["deadLetterTargetArn"]
            dead = deployed.properties(arn.strip("<>").split(".")[0])["MessageRetentionPeriod"]
            days = (2 * int(kept) + int(dead)) / (24 * 3600)
            equal((queue, parameter["MinValue"] >= days), (queue, True))
            equal((queue, parameter["Default"] >= days), (queue, True))


def no_log_level_keeps_the_metrics_out_of_the_log() -> None:
    """To Lambda a line without a level, such as one that becomes metrics, is of INFO:
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html."""
    equal(set(SOURCE["Parameters"]["LogLevel"]["AllowedValues"]) <= {"TRACE", "DEBUG", "INFO"}, True)
    for deployed in ALL.values():
        for name, function in deployed.of_type("AWS::Lambda::Function").items():
            level = function["Properties"]["LoggingConfig"]["ApplicationLogLevel"]
            equal((name, level), (name, SOURCE["Parameters"]["LogLevel"]["Default"]))


def the_console_asks_for_every_parameter_in_a_group() -> None:
    groups = SOURCE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    asked = [name for group in groups for name in group["Parameters"]]
    equal(sorted(asked), sorted(SOURCE["Parameters"]))


def no_parameter_is_hidden_since_guided_deployments_would_ask_for_it_for_ever() -> None:
    equal([name for name, parameter in SOURCE["Parameters"].items() if parameter.get("NoEcho")], [])


def samconfig_names_parameters_that_exist() -> None:
    for stage in ("default", "prod"):
        Deployed({**variants.BY_SECRET, **samconfig.parameters(stage)})


def samconfig_is_read_as_readme_and_guided_deployments_write_it() -> None:
    readme = (ROOT / "README.md").read_text()
    block = readme[readme.index("   parameter_overrides = [") : readme.index("   ]\n   ```")]
    guided = r'''parameter_overrides = "MailFrom=\"Job Board <no-reply@example.com>\" SubnetIds=\"subnet-1,subnet-2\" RecipientAllowList=\"\""'''
    for written in (block + "]", guided):
        given = samconfig.parameters("default", f"[default.deploy.parameters]\n{written}")
        equal((given["MailFrom"], given["SubnetIds"][:7]), ("Job Board <no-reply@example.com>", "subnet-"))
    equal(given["RecipientAllowList"], "")


CHECKS = [
    a_changed_parameter_publishes_a_version_just_when_it_changes_the_function,
    other_security_groups_publish_a_version_inside_a_vpc,
    another_server_beside_the_secret_publishes_a_version_too,
    with_another_proxy_user_a_version_is_published_too,
    the_sum_of_connections_is_what_the_parameter_says,
    the_rate_of_all_copies_is_what_the_parameter_says,
    the_switch_stops_notify_and_not_feedback,
    a_gradual_deployment_has_alarms_and_one_at_once_has_none,
    the_queue_calls_the_alias_and_not_whatever_was_uploaded_last,
    ses_sends_with_tls_and_suppresses_who_bounced_or_complained,
    an_identity_of_the_stack_gives_its_dkim_records,
    what_contradicts_itself_is_refused,
    the_ledger_remembers_an_event_for_as_long_as_sqs_can_bring_it_back,
    no_log_level_keeps_the_metrics_out_of_the_log,
    the_console_asks_for_every_parameter_in_a_group,
    no_parameter_is_hidden_since_guided_deployments_would_ask_for_it_for_ever,
    samconfig_names_parameters_that_exist,
    samconfig_is_read_as_readme_and_guided_deployments_write_it,
]
