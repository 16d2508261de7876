"""Checks of who may do what, and of where secrets are."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any

import source
import variants
from deployed import Deployed, Refused
from queues import ALL, equal

# Done with a function's role by Lambda, not by the code.
BY_LAMBDA = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
}
BY_LAMBDA_IN_A_VPC = {
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
}
BY_LAMBDA_TRACED = {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}
# Not calls of an API: decryption by Secrets Manager in our name, and the connection itself.
WITHOUT_A_CALL = {"kms:Decrypt", "rds-db:connect"}
# These know no resources.
FOR_ANY_RESOURCE = BY_LAMBDA_IN_A_VPC | BY_LAMBDA_TRACED | {"cloudwatch:DescribeAlarms"}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def allowed(deployed: Deployed, role: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each action that the role may do, with the statement that says so."""
    for policy in deployed.properties(role)["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                for action in listed(statement["Action"]):
                    yield action, statement


def actions(deployed: Deployed, role: str) -> set[str]:
    return {action for action, _ in allowed(deployed, role)}


def no_role_has_a_managed_policy() -> None:
    for deployed in ALL.values():
        for role in deployed.of_type("AWS::IAM::Role").values():
            equal("ManagedPolicyArns" in role["Properties"], False)


def no_role_may_do_anything_to_everything() -> None:
    for deployed in ALL.values():
        for role in deployed.of_type("AWS::IAM::Role"):
            for action, statement in allowed(deployed, role):
                equal((role, action, "*" in action), (role, action, False))
                if "*" in listed(statement["Resource"]):
                    equal((role, action, action in FOR_ANY_RESOURCE), (role, action, True))


def the_functions_may_do_what_the_code_does_and_no_more() -> None:
    code = source.actions() | WITHOUT_A_CALL
    seen = set()
    for deployed in ALL.values():
        for function in deployed.of_type("AWS::Lambda::Function").values():
            role = function["Properties"]["Role"].strip("<>").split(".")[0]
            may = actions(deployed, role)
            equal((role, may - code - BY_LAMBDA - BY_LAMBDA_IN_A_VPC - BY_LAMBDA_TRACED), (role, set()))
            seen |= may & code
    equal(seen, code)


def each_function_has_a_role_of_its_own() -> None:
    functions = ALL["secret"].of_type("AWS::Lambda::Function").values()
    equal(len({function["Properties"]["Role"] for function in functions}), len(functions))


def only_notify_sends_and_only_as_its_domain_with_identity_and_configuration_set() -> None:
    for deployed in ALL.values():
        for role in deployed.of_type("AWS::IAM::Role"):
            statements = [statement for action, statement in allowed(deployed, role) if action.startswith("ses:")]
            equal((role, len(statements)), (role, 1 if role == "NotifyRole" else 0))
            for statement in statements:
                kinds = [arn.split(":")[5].split("/")[0] for arn in statement["Resource"]]
                equal(kinds, ["identity", "configuration-set"])
                equal(statement["Condition"]["StringLike"], {"ses:FromAddress": "*@example.com"})


def recipients_of(parameters: dict[str, str]) -> list[str] | None:
    deployed = Deployed({**variants.BY_SECRET, **parameters})
    (statement,) = [found for action, found in allowed(deployed, "NotifyRole") if action == "ses:SendEmail"]
    condition = statement["Condition"].get("ForAllValues:StringLike")
    return None if condition is None else condition["ses:Recipients"]


def admits(patterns: list[str] | None, address: str) -> bool:
    return any(fnmatch.fnmatchcase(address, pattern) for pattern in patterns or [])


def iam_admits_the_recipients_of_the_list_and_nobody_else() -> None:
    equal(recipients_of({}), None)
    listed = {"RecipientAllowList": "@example.com,sam@example.org"}
    redirected = {**listed, "RecipientRedirect": "us@example.net"}
    for parameters in (listed, redirected):
        patterns = recipients_of(parameters)
        for address in ("kim@example.com", "sam@example.org", "Kim <kim@example.com>", "Sam <sam@example.org>"):
            equal((address, admits(patterns, address)), (address, True))
        for address in ("kim@example.org", "kim@example.com.evil.example", "kim@notexample.com", "@", ""):
            equal((address, admits(patterns, address)), (address, False))
    equal(admits(recipients_of(listed), "us@example.net"), False)
    equal(admits(recipients_of(redirected), "us@example.net"), True)


def a_token_is_for_one_user_of_one_database() -> None:
    for name, database in (("IAM tokens", "cluster-ABCDEF0123456789"), ("proxy of a cluster", "prx-0123456789abcdef0")):
        (resource,) = [
            statement["Resource"] for action, statement in allowed(ALL[name], "NotifyRole") if action == "rds-db:connect"
        ]
        equal(resource, f"arn:aws:rds-db:eu-west-1:123456789012:dbuser:{database}/onemail")


def one_secret_can_be_read_and_by_the_functions_that_need_it() -> None:
    def secrets(variant: str, role: str) -> list[str]:
        found = allowed(ALL[variant], role)
        return [statement["Resource"] for action, statement in found if action == "secretsmanager:GetSecretValue"]

    for role in ("NotifyRole", "FeedbackRole", "CleanupRole", "MigrateRole"):
        equal(secrets("secret", role), [variants.SECRET])
        equal(secrets("IAM tokens", role), [])
        # The proxy reads it, and they come with a token.
        equal(secrets("proxy of a cluster", role), [])
    equal(secrets("proxy of a cluster", "ProxyRole"), [variants.SECRET])
    owner = "secret, and another for migrate"
    equal((secrets(owner, "NotifyRole"), secrets(owner, "MigrateRole")), ([variants.SECRET], [variants.SECRET.replace("database", "owner")]))


def what_is_recommended_puts_no_secret_into_an_environment() -> None:
    for name in variants.RECOMMENDED:
        for resource in ALL[name].resources.values():
            equal((name, "{{resolve:" in str(resource)), (name, False))
    equal("{{resolve:" in str(ALL["URL in a secret"].properties("NotifyFunction")), True)


def no_parameter_takes_a_password() -> None:
    for url in ("postgres://onemail:hunter2@db/jobs", "postgres://onemail:@db/jobs", "postgresql://o:a%40b@db/jobs"):
        try:
            Deployed({**variants.MAIL, "DatabaseUrl": url})
        except Refused:
            continue
        raise AssertionError(f"{url} was taken")


CHECKS = [
    no_role_has_a_managed_policy,
    no_role_may_do_anything_to_everything,
    the_functions_may_do_what_the_code_does_and_no_more,
    each_function_has_a_role_of_its_own,
    only_notify_sends_and_only_as_its_domain_with_identity_and_configuration_set,
    iam_admits_the_recipients_of_the_list_and_nobody_else,
    a_token_is_for_one_user_of_one_database,
    one_secret_can_be_read_and_by_the_functions_that_need_it,
    what_is_recommended_puts_no_secret_into_an_environment,
    no_parameter_takes_a_password,
]
