"""Checks of the network: what its parameters need of each other, endpoints, and the proxy."""

from __future__ import annotations

import re

import variants
from deployed import PSEUDO, Deployed, Refused
from queues import ALL, equal

# The longest stack name of which the template speaks.
LONGEST_STACK_NAME = 34
# https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_CreateDBProxy.html
PROXY_NAME = r"[a-zA-Z](?:-?[a-zA-Z0-9]+)*"
LONGEST_PROXY_NAME = 63


def is_refused(parameters: dict[str, str]) -> bool:
    try:
        Deployed(parameters)
    except Refused:
        return True
    return False


def endpoints_and_a_proxy_need_the_whole_network_and_subnets_need_security_groups() -> None:
    """Otherwise the deployment fails when half of it is done."""
    for parameters in (variants.BY_PROXY, variants.ALL["endpoints"]):
        for name in variants.NETWORK:
            equal((name, is_refused({**parameters, name: ""})), (name, True))
    subnets = {**variants.BY_SECRET, "SubnetIds": variants.NETWORK["SubnetIds"]}
    equal((is_refused(subnets), is_refused({**subnets, "SecurityGroupIds": "sg-1"})), (True, False))


def endpoints_are_for_the_api_of_ses_and_what_else_is_called() -> None:
    services = [endpoint["Properties"]["ServiceName"] for endpoint in ALL["endpoints"].of_type("AWS::EC2::VPCEndpoint").values()]
    equal(sorted(services), [f"com.amazonaws.eu-west-1.{name}" for name in ("email", "secretsmanager", "sqs")])
    equal(ALL["secret"].of_type("AWS::EC2::VPCEndpoint"), {})


def endpoints_answer_to_the_public_names_in_the_functions_subnets() -> None:
    """The functions know no other names."""
    for endpoint in ALL["endpoints"].of_type("AWS::EC2::VPCEndpoint").values():
        properties = endpoint["Properties"]
        equal((properties["PrivateDnsEnabled"], properties["VpcEndpointType"]), (True, "Interface"))
        equal(properties["SubnetIds"], variants.NETWORK["SubnetIds"].split(","))
        equal(properties["SecurityGroupIds"], ["<EndpointGroup.GroupId>"])


def endpoints_and_proxy_admit_the_functions_group_and_nobody_else() -> None:
    for variant, group, port in (("endpoints", "EndpointGroup", 443), ("proxy of a cluster", "ProxyGroup", 5432)):
        (rule,) = ALL[variant].properties(group)["SecurityGroupIngress"]
        seen = (rule["IpProtocol"], rule["FromPort"], rule["ToPort"], rule["SourceSecurityGroupId"])
        equal(seen, ("tcp", port, port, "sg-1"))
        functions = ALL[variant].properties("NotifyFunction")["VpcConfig"]["SecurityGroupIds"]
        equal("sg-1" in functions, True)


def the_proxy_speaks_only_tls_and_only_with_who_has_a_token() -> None:
    for variant in ("proxy of a cluster", "proxy of an instance, secret with a key"):
        proxy = ALL[variant].properties("Proxy")
        equal((proxy["EngineFamily"], proxy["RequireTLS"]), ("POSTGRESQL", True))
        (login,) = proxy["Auth"]
        equal((login["AuthScheme"], login["SecretArn"], login["IAMAuth"]), ("SECRETS", variants.SECRET, "REQUIRED"))


def another_first_subnet_is_another_proxy() -> None:
    """A proxy's subnets can't be changed, and CloudFormation replaces what has a name only under another one."""

    def name(subnets: str) -> str:
        found: str = Deployed({**variants.BY_PROXY, "SubnetIds": subnets}).properties("Proxy")["DBProxyName"]
        return found

    here, there = "subnet-0123456789abcdef0", "subnet-0123456789abcdef1"
    equal((name(f"{here},{there}") == name(here), name(f"{there},{here}") == name(here)), (True, False))
    equal(re.fullmatch(PROXY_NAME, name(here)) is not None, True)
    equal(len(name(here)) - len(PSEUDO["AWS::StackName"]) + LONGEST_STACK_NAME <= LONGEST_PROXY_NAME, True)


CHECKS = [
    endpoints_and_a_proxy_need_the_whole_network_and_subnets_need_security_groups,
    endpoints_are_for_the_api_of_ses_and_what_else_is_called,
    endpoints_answer_to_the_public_names_in_the_functions_subnets,
    endpoints_and_proxy_admit_the_functions_group_and_nobody_else,
    the_proxy_speaks_only_tls_and_only_with_who_has_a_token,
    another_first_subnet_is_another_proxy,
]
