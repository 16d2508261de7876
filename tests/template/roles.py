"""Checks of who may do what, and of where secrets are."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any

import grants
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
BY_LAMBDA_IN_A_VPC = grants.NETWORK["*"]
BY_LAMBDA_TRACED = grants.TRACING["*"]
# Not calls of an API: decryption by Secrets Manager in our name, and the connection itself.
WITHOUT_A_CALL = {"kms:Decrypt", "rds-db:connect"}
# Who may take on each role.
TAKEN_ON_BY = {
    "NotifyRole": "lambda",
    "FeedbackRole": "lambda",
    "CleanupRole": "lambda",
    "MigrateRole": "lambda",
    "ScheduleRole": "scheduler",
    "DeploymentRole": "codedeploy",
    "ProxyRole": "rds",
}
# These do it in the name of whoever asks them to.
FOR_OUR_ACCOUNT = {"scheduler", "codedeploy"}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(deployed: Deployed, role: str, effect: str) -> list[dict[str, Any]]:
    policies = deployed.properties(role)["Policies"]
    found = [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]
    return [statement for statement in found if statement["Effect"] == effect]


def allowed(deployed: Deployed, role: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each action that the role may do, with the statement that says so."""
    for statement in statements(deployed, role, "Allow"):
        for action in listed(statement["Action"]):
            yield action, statement


def actions(deployed: Deployed, role: str) -> set[str]:
    return {action for action, _ in allowed(deployed, role)}


def granted(deployed: Deployed, role: str) -> grants.Grants:
    """What the role may do, by what it may do it to."""
    found: grants.Grants = {}
    for action, statement in allowed(deployed, role):
        for resource in listed(statement["Resource"]):
            found.setdefault(resource, set()).add(action)
    return found


def no_role_has_a_managed_policy() -> None:
    for deployed in ALL.values():
        for role in deployed.of_type("AWS::IAM::Role").values():
            equal("ManagedPolicyArns" in role["Properties"], False)


def every_role_may_do_what_its_table_says_to_what_it_names_and_nothing_else() -> None:
    for variant, deployed in ALL.items():
        roles = {role: granted(deployed, role) for role in deployed.of_type("AWS::IAM::Role")}
        expected = grants.of(variant)
        equal((variant, sorted(roles)), (variant, sorted(expected)))
        for role in roles:
            equal((variant, role, roles[role]), (variant, role, expected[role]))


def the_code_may_not_do_what_lambda_does_to_the_network() -> None:
    """It runs with the same role. A call of the function's own names it as its source, one of Lambda's does not."""
    functions = "arn:aws:lambda:eu-west-1:123456789012:function:onemail-*"
    denied = {
        "Effect": "Deny",
        "Action": "ec2:*",
        "Resource": "*",
        "Condition": {"ArnLike": {"lambda:SourceFunctionArn": functions}},
    }
    for deployed in ALL.values():
        in_vpc = "VpcConfig" in deployed.properties("NotifyFunction")
        for role in deployed.of_type("AWS::IAM::Role"):
            found = [{**statement, "Sid": None} for statement in statements(deployed, role, "Deny")]
            expected = [{**denied, "Sid": None}] if in_vpc and role in grants.FUNCTIONS else []
            equal((role, found), (role, expected))


def every_role_is_taken_on_by_one_service_and_for_our_account() -> None:
    for deployed in ALL.values():
        for name, role in deployed.of_type("AWS::IAM::Role").items():
            (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
            service = TAKEN_ON_BY[name]
            seen = (statement["Effect"], statement["Principal"], statement["Action"])
            equal((name, *seen), (name, "Allow", {"Service": f"{service}.amazonaws.com"}, "sts:AssumeRole"))
            ours = {"StringEquals": {"aws:SourceAccount": "123456789012"}} if service in FOR_OUR_ACCOUNT else None
            equal((name, statement.get("Condition")), (name, ours))


def keys_open_secrets_through_secrets_manager_alone() -> None:
    through = {"StringEquals": {"kms:ViaService": "secretsmanager.eu-west-1.amazonaws.com"}}
    for deployed in ALL.values():
        for role in deployed.of_type("AWS::IAM::Role"):
            for action, statement in allowed(deployed, role):
                if action == "kms:Decrypt":
                    equal((role, statement["Condition"]), (role, through))


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


def only_notify_sends_and_only_as_its_domain() -> None:
    for deployed in ALL.values():
        for role in deployed.of_type("AWS::IAM::Role"):
            found = [statement for action, statement in allowed(deployed, role) if action.startswith("ses:")]
            equal((role, len(found)), (role, 1 if role == "NotifyRole" else 0))
            for statement in found:
                equal(statement["Condition"]["StringLike"], {"ses:FromAddress": "*@example.com"})


def recipients_of(parameters: dict[str, str]) -> list[str] | None:
    deployed = Deployed({**variants.BY_SECRET, **parameters})
    (statement,) = [found for action, found in allowed(deployed, "NotifyRole") if action == "ses:SendEmail"]
    condition = statement["Condition"].get("ForAllValues:StringLike")
    return None if condition is None else condition["ses:Recipients"]


# Near to who is on the list.
NOBODY = ("kim@example.org", "kim@example.com.evil.example", "kim@notexample.com", "@", "")


def admits(patterns: list[str] | None, address: str) -> bool:
    return any(fnmatch.fnmatchcase(address, pattern) for pattern in patterns or [])


def iam_admits_the_recipients_of_the_list_and_nobody_else() -> None:
    equal(recipients_of({}), None)
    listed = {"RecipientAllowList": "@example.com,sam@example.org"}
    redirected = {**listed, "RecipientRedirect": "us@example.net"}
    for parameters in (listed, redirected):
        patterns = recipients_of(parameters)
        for address in ("kim@example.com", "sam@example.org"):
            equal((address, admits(patterns, address), admits(patterns, f"Name <{address}>")), (address, True, True))
        for address in (*NOBODY, "xsam@example.org", "sam@example.org.evil.example"):
            equal((address, admits(patterns, address), admits(patterns, f"Name <{address}>")), (address, False, False))
    for parameters, admitted in ((listed, False), (redirected, True)):
        for written in ("us@example.net", "Us <us@example.net>"):
            equal((written, admits(recipients_of(parameters), written)), (written, admitted))
        equal(admits(recipients_of(parameters), "bogus@example.net"), False)


def a_list_takes_no_sign_of_which_a_pattern_is_made() -> None:
    for sign in "*?<> ":
        for name in ("RecipientAllowList", "RecipientRedirect"):
            given = {"RecipientAllowList": "sam@example.org", name: f"sam{sign}@example.org"}
            try:
                Deployed({**variants.BY_SECRET, **given})
            except Refused:
                continue
            raise AssertionError(f"{given} was taken")


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
    every_role_may_do_what_its_table_says_to_what_it_names_and_nothing_else,
    the_code_may_not_do_what_lambda_does_to_the_network,
    every_role_is_taken_on_by_one_service_and_for_our_account,
    keys_open_secrets_through_secrets_manager_alone,
    the_functions_may_do_what_the_code_does_and_no_more,
    each_function_has_a_role_of_its_own,
    only_notify_sends_and_only_as_its_domain,
    iam_admits_the_recipients_of_the_list_and_nobody_else,
    a_list_takes_no_sign_of_which_a_pattern_is_made,
    what_is_recommended_puts_no_secret_into_an_environment,
    no_parameter_takes_a_password,
]
