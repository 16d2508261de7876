"""The ways in which the template is deployed."""

from __future__ import annotations

SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:onemail/database-AbCdEf"
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
    "secret with a key of one's own": {
        **BY_SECRET,
        "DatabaseSecretKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/0123-4567",
    },
    "secret, and another for migrate": {**BY_SECRET, "MigrationSecretArn": SECRET.replace("database", "owner")},
    "secret that RDS manages": {**BY_SECRET, "DatabaseUrl": "postgres://db.example.com:5432/jobs"},
    "IAM tokens": BY_TOKEN,
    "proxy of a cluster": BY_PROXY,
    "proxy of an instance": {**BY_PROXY, "ProxyDatabaseCluster": "", "ProxyDatabaseInstance": "jobs-1"},
    "endpoints": {**BY_SECRET, **NETWORK, "CreateVpcEndpoints": "true"},
    "FIFO": {**BY_SECRET, "Fifo": "true"},
    "lease mode that holds": {**BY_SECRET, "ClaimMode": "lease", "InDoubt": "hold"},
    "canary": {**BY_SECRET, "Deployment": "Canary10Percent5Minutes"},
    "traced": {**BY_SECRET, "Tracing": "Active"},
    "trial": {**BY_SECRET, "RecipientAllowList": "@example.com,sam@example.org", "RecipientRedirect": "us@example.net"},
    "identity": {**BY_SECRET, "CreateSesIdentity": "true"},
    "producers": {**BY_SECRET, "ProducerArns": "arn:aws:sns:eu-west-1:123456789012:orders"},
    "alarms that tell": {**BY_SECRET, "AlarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:alarms"},
}
ALL = {**RECOMMENDED, "URL in a secret": BY_URL_SECRET, "no password": {**MAIL, "DatabaseUrl": URL}}
