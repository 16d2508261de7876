"""What SES says of an email, as it writes it for a configuration set's SNS destination:
https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html
"""

from __future__ import annotations

import email.utils
import uuid
from datetime import datetime, timedelta
from typing import Any

from aws import REGION
from outbox import Email

Notification = dict[str, Any]

# The stand-in's only one.
ACCOUNT = "000000000000"

# Once, to each topic that becomes a destination.
GREETING = "Successfully validated SNS topic for Amazon SES event publishing."


def send(sent: Email) -> Notification:
    """SES has taken it, and will try to deliver it."""
    return {"eventType": "Send", "mail": _mail(sent), "send": {}}


def delivery(sent: Email, milliseconds: int) -> Notification:
    """The recipient's mail server has taken it, so long after SES did."""
    recipient = _recipient(sent)
    return {
        "eventType": "Delivery",
        "mail": _mail(sent),
        "delivery": {
            "timestamp": _time(sent.accepted_at + timedelta(milliseconds=milliseconds)),
            "processingTimeMillis": milliseconds,
            "recipients": [recipient],
            "smtpResponse": f"250 2.6.0 Message received for <{recipient}>",
            "remoteMtaIp": "192.0.2.25",
            "reportingMTA": f"a8-70.smtp-out.{REGION}.amazonses.com",
        },
    }


def bounce(sent: Email) -> Notification:
    """The recipient's mail server knows nobody of that name."""
    recipient = _recipient(sent)
    return {
        "eventType": "Bounce",
        "mail": _mail(sent),
        "bounce": {
            "bounceType": "Permanent",
            "bounceSubType": "General",
            "bouncedRecipients": [
                {
                    "emailAddress": recipient,
                    "action": "failed",
                    "status": "5.1.1",
                    "diagnosticCode": f"smtp; 550 5.1.1 <{recipient}>: user unknown",
                }
            ],
            "timestamp": _time(sent.accepted_at + timedelta(seconds=3)),
            "feedbackId": f"{uuid.uuid4()}-000000",
            "remoteMtaIp": "192.0.2.25",
            "reportingMTA": f"dsn; a8-70.smtp-out.{REGION}.amazonses.com",
        },
    }


def _mail(sent: Email) -> dict[str, Any]:
    source = sent.request["FromEmailAddress"]
    domain = _address(source).rpartition("@")[2]
    return {
        "timestamp": _time(sent.accepted_at),
        "source": source,
        "sourceArn": f"arn:aws:ses:{REGION}:{ACCOUNT}:identity/{domain}",
        "sendingAccountId": ACCOUNT,
        "messageId": sent.message_id,
        "destination": [_recipient(sent)],
        "headersTruncated": False,
        "headers": [
            {"name": "From", "value": source},
            {"name": "To", "value": sent.to[0]},
            {"name": "Subject", "value": sent.subject},
        ],
        "commonHeaders": {
            "from": [source],
            "to": sent.to,
            "messageId": sent.message_id,
            "subject": sent.subject,
        },
        # Each as a list: those of SES's own, and the email's.
        "tags": {
            "ses:operation": ["SendEmail"],
            "ses:configuration-set": [sent.configuration_set],
            "ses:source-ip": ["192.0.2.10"],
            "ses:from-domain": [domain],
            "ses:caller-identity": ["onemail-notify"],
            **{name: [value] for name, value in sent.tags.items()},
        },
    }


def _recipient(sent: Email) -> str:
    return _address(sent.to[0])


def _address(mailbox: str) -> str:
    return email.utils.parseaddr(mailbox)[1]


def _time(moment: datetime) -> str:
    """In UTC, to the millisecond: 2026-11-30T12:00:00.000Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"
