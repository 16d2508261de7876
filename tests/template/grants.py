"""Who may do what to what, in each way in which the template is deployed. What isn't here nobody may."""

from __future__ import annotations

from collections import defaultdict

import variants

# Resource, and what may be done to it.
Grants = dict[str, set[str]]

ACCOUNT = "eu-west-1:123456789012"
SES = f"arn:aws:ses:{ACCOUNT}"
USER = f"arn:aws:rds-db:{ACCOUNT}:dbuser:{{}}/onemail"
CONSUME = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ChangeMessageVisibility",
}
SEND = {"sqs:SendMessage"}
LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}

# EC2 and X-Ray know no resources for these.
NETWORK: Grants = {
    "*": {
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:AssignPrivateIpAddresses",
        "ec2:UnassignPrivateIpAddresses",
    }
}
TRACING: Grants = {"*": {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}}


def secret(arn: str) -> Grants:
    return {arn: {"secretsmanager:GetSecretValue"}}


def key(arn: str) -> Grants:
    return {arn: {"kms:Decrypt"}}


def token(database: str) -> Grants:
    return {USER.format(database): {"rds-db:connect"}}


# Whatever the parameters are; what notify sends with is below.
ALWAYS: dict[str, Grants] = {
    "NotifyRole": {"<EventsQueue.Arn>": CONSUME, "<DeadLetterQueue.Arn>": SEND, "<NotifyLogGroup.Arn>": LOG},
    "FeedbackRole": {"<FeedbackQueue.Arn>": CONSUME, "<FeedbackLogGroup.Arn>": LOG},
    "CleanupRole": {"<CleanupLogGroup.Arn>": LOG, "<CleanupDeadLetterQueue.Arn>": SEND},
    "MigrateRole": {"<MigrateLogGroup.Arn>": LOG},
    "ScheduleRole": {"<CleanupFunction.Arn>": {"lambda:InvokeFunction"}, "<CleanupDeadLetterQueue.Arn>": SEND},
    "DeploymentRole": {
        "<NotifyFunction.Arn>": {"lambda:GetAlias", "lambda:UpdateAlias"},
        "<NotifyFunction.Arn>:live": {"lambda:GetAlias", "lambda:UpdateAlias"},
        "<NotifyFunction.Arn>:*": {"lambda:GetProvisionedConcurrencyConfig"},
        # CloudWatch knows no resources for it.
        "*": {"cloudwatch:DescribeAlarms"},
    },
}
FUNCTIONS = ("NotifyRole", "FeedbackRole", "CleanupRole", "MigrateRole")

THE_SECRET = secret(variants.SECRET)
TO_THE_PROXY = token("prx-0123456789abcdef0") | NETWORK
# How the functions come to the database, where it isn't with the one secret.
DATABASE: dict[str, Grants] = {
    "secret with a key": THE_SECRET | key(variants.KEY),
    "secret, and another for migrate, with one key": THE_SECRET | key(variants.KEY),
    "secret, and another for migrate, with two keys": THE_SECRET | key(variants.KEY),
    "IAM tokens": token("cluster-ABCDEF0123456789"),
    "IAM tokens, and a secret for migrate": token("cluster-ABCDEF0123456789"),
    "proxy of a cluster": TO_THE_PROXY,
    "proxy of an instance, secret with a key": TO_THE_PROXY,
    "endpoints": THE_SECRET | NETWORK,
    "traced": THE_SECRET | TRACING,
    "URL in a secret": {},
    "no password": {},
}
# How migrate comes, where it comes as another user: with a password, and so without a token.
OWNER: dict[str, Grants] = {
    "secret, and another for migrate": secret(variants.OWNERS_SECRET),
    "secret, and another for migrate, with one key": secret(variants.OWNERS_SECRET) | key(variants.KEY),
    "secret, and another for migrate, with two keys": secret(variants.OWNERS_SECRET) | key(variants.OWNERS_KEY),
    "IAM tokens, and a secret for migrate": secret(variants.OWNERS_SECRET),
}
# What the proxy itself reads.
PROXY: dict[str, Grants] = {
    "proxy of a cluster": THE_SECRET,
    "proxy of an instance, secret with a key": THE_SECRET | key(variants.KEY),
}
# As whom notify sends, where it isn't the sender's domain with the stack's own configuration set.
IDENTITY = {"identity of a parent domain": "example.org"}
CONFIGURATION_SET = {"configuration set of others": "theirs"}


def sending(variant: str) -> Grants:
    return {
        f"{SES}:identity/{IDENTITY.get(variant, 'example.com')}": {"ses:SendEmail"},
        f"{SES}:configuration-set/{CONFIGURATION_SET.get(variant, '<ConfigurationSet>')}": {"ses:SendEmail"},
    }


def of(variant: str) -> dict[str, Grants]:
    """All roles' in this way of deploying."""
    found: dict[str, Grants] = defaultdict(dict)
    for role, grants in ALWAYS.items():
        found[role] = dict(grants)
    found["NotifyRole"] |= sending(variant)
    for role in FUNCTIONS:
        found[role] |= DATABASE.get(variant, THE_SECRET)
    if variant in OWNER:
        found["MigrateRole"] = ALWAYS["MigrateRole"] | OWNER[variant]
    if variant in PROXY:
        found["ProxyRole"] = PROXY[variant]
    return dict(found)
