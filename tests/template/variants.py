"""The ways in which the template is deployed."""

from __future__ import annotations

SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:onemail/database-AbCdEf"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/0123-4567"
OWNERS_SECRET = SECRET.replace("database", "owner")
OWNERS_KEY = KEY.replace("0123-4567", "89ab-cdef")
MAIL = {"MailFrom": "Job Board <no-reply@example.com>"}
NETWORK = {
    "VpcId": "vpc-0123456789abcdef0",
    "SubnetIds": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "SecurityGroupIds": "sg-1,sg-2",
}
URL = "postgres://onemail@db.example.com:5432/jobs"

BY_SECRET = {**MAIL, "DatabaseSecretArn": SECRET}
BY_TOKEN = {**MAIL, "DatabaseUrl": URL, "DatabaseResourceId": "cluster-ABCDEF0123456789"}
BY_PROXY = {**MAIL, **NETWORK, "DatabaseUrl": URL, "DatabaseSecretArn": SECRET, "ProxyDatabaseCluster": "jobs"}
BY_URL_SECRET = {**MAIL, "DatabaseUrlSecretArn": SECRET}

# What the documentation recommends: without a secret in the environment.
RECOMMENDED = {
    "secret": BY_SECRET,
    "secret with a key": {**BY_SECRET, "DatabaseSecretKeyArn": KEY},
    "secret, and another for migrate": {**BY_SECRET, "MigrationSecretArn": OWNERS_SECRET},
    "secret, and another for migrate, with one key": {
        **BY_SECRET,
        "DatabaseSecretKeyArn": KEY,
        "MigrationSecretArn": OWNERS_SECRET,
    },
    "secret, and another for migrate, with two keys": {
        **BY_SECRET,
        "DatabaseSecretKeyArn": KEY,
        "MigrationSecretArn": OWNERS_SECRET,
        "MigrationSecretKeyArn": OWNERS_KEY,
    },
    "secret that RDS manages": {**BY_SECRET, "DatabaseUrl": "postgres://db.example.com:5432/jobs"},
    "IAM tokens": BY_TOKEN,
    "IAM tokens, and a secret for migrate": {**BY_TOKEN, "MigrationSecretArn": OWNERS_SECRET},
    "proxy of a cluster": BY_PROXY,
    "proxy of an instance, secret with a key": {
        **BY_PROXY,
        "ProxyDatabaseCluster": "",
        "ProxyDatabaseInstance": "jobs-1",
        "DatabaseSecretKeyArn": KEY,
    },
    "endpoints": {**BY_SECRET, **NETWORK, "CreateVpcEndpoints": "true"},
    "FIFO": {**BY_SECRET, "Fifo": "true"},
    "lease mode that holds": {**BY_SECRET, "ClaimMode": "lease", "InDoubt": "hold"},
    "canary": {**BY_SECRET, "Deployment": "Canary10Percent5Minutes"},
    "traced": {**BY_SECRET, "Tracing": "Active"},
    "trial": {**BY_SECRET, "RecipientAllowList": "@example.com,sam@example.org", "RecipientRedirect": "us@example.net"},
    "identity": {**BY_SECRET, "CreateSesIdentity": "true"},
    "identity of a parent domain": {**BY_SECRET, "SesIdentity": "example.org"},
    "configuration set of others": {**BY_SECRET, "SesConfigurationSet": "theirs"},
    "producers": {**BY_SECRET, "ProducerArns": "arn:aws:sns:eu-west-1:123456789012:orders"},
    "alarms that tell": {**BY_SECRET, "AlarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:alarms"},
}
ALL = {**RECOMMENDED, "URL in a secret": BY_URL_SECRET, "no password": {**MAIL, "DatabaseUrl": URL}}
