"""The checks of the end-to-end test for what SES says of each email: topic, queue, `feedback`, the ledger."""

from __future__ import annotations

import collections
import json
import uuid
from datetime import datetime, timezone
from typing import Any

import aws
import cloud
import messages
import notifications
from expect import (
    FIRST_DELAY_SECONDS,
    between,
    comes_back_in,
    emails_of,
    emptied,
    equal,
    feedback_of,
    only,
    outcomes_of,
    recorded,
    rows_of,
    send_status_change,
    until,
)
from outbox import Email

# The template's InDoubtWait.
IN_DOUBT_WAIT_SECONDS = 120


def ses_says_of_an_email_that_it_was_taken_and_delivered(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 3, "interview")
    until(lambda: len(feedback_of(here, event_id)) == 2, "SES has said both")
    email = only(emails_of(here, event_id))
    said = [(row["kind"], row["ses_message_id"]) for row in feedback_of(here, event_id)]
    equal(said, [("send", email.message_id), ("delivery", email.message_id)])
    equal(only(rows_of(here, event_id))["settled_by"], "worker")


def a_claim_that_was_never_made_is_completed_by_ses(here: cloud.Cloud) -> None:
    event_id = str(uuid.uuid4())
    sent = email_that_nobody_claimed(here, event_id)
    publish(here, notifications.send(sent))
    until(lambda: rows_of(here, event_id) != [], "the claim is there")
    row = only(rows_of(here, event_id))
    equal((row["outcome"], row["settled_by"], row["ses_message_id"]), ("sent", "ses", sent.message_id))
    message = only(here.send(messages.status_change(event_id, 3, "offer")))
    emptied(here)
    equal(outcomes_of(here, message), ["duplicate"])
    equal(emails_of(here, event_id), [])


def an_email_whose_reply_was_lost_is_settled_by_ses_and_not_sent_again(here: cloud.Cloud) -> None:
    with here.publisher.held():
        here.outbox.lose_replies(1)
        event_id = str(uuid.uuid4())
        message = only(here.send(messages.status_change(event_id, 6, "offer")))
        until(lambda: outcomes_of(here, message) == ["unknown"], "the first try is logged")
        equal(rows_of(here, event_id), [])
        # Later than after any other failure, so that SES's word comes first.
        held = only(here.aws.messages_on(here.stack.events_queue_url))
        between(FIRST_DELAY_SECONDS, comes_back_in(held), IN_DOUBT_WAIT_SECONDS)
    until(lambda: rows_of(here, event_id) != [], "the claim is there")
    row = only(rows_of(here, event_id))
    sent = only(emails_of(here, event_id))
    equal((row["outcome"], row["settled_by"], row["ses_message_id"]), ("sent", "ses", sent.message_id))
    # The redelivery, without the wait for it.
    again = only(here.send(messages.status_change(event_id, 6, "offer")))
    until(lambda: outcomes_of(here, again) == ["duplicate"], "the redelivery is a duplicate")
    only(emails_of(here, event_id))
    here.purge()


def a_bounce_is_recorded_without_an_address(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 7, "rejected")
    until(lambda: len(feedback_of(here, event_id)) == 2, "SES has said that it was taken and delivered")
    publish(here, notifications.bounce(only(emails_of(here, event_id))))
    until(lambda: len(feedback_of(here, event_id)) == 3, "the bounce is recorded")
    bounce = only([row for row in feedback_of(here, event_id) if row["kind"] == "bounce"])
    detail = bounce["detail"]
    equal((detail["bounceType"], detail["recipients"], detail["statuses"]), ("Permanent", 1, ["5.1.1"]))


def a_notification_that_comes_twice_is_one_row(here: cloud.Cloud) -> None:
    event_id = str(uuid.uuid4())
    bounce = notifications.bounce(email_that_nobody_claimed(here, event_id))
    publish(here, bounce)
    publish(here, bounce)
    recorded(here)
    only(feedback_of(here, event_id))
    # Only `Send` says that an email was taken.
    equal(rows_of(here, event_id), [])


def a_second_email_for_the_same_event_is_told(here: cloud.Cloud) -> None:
    event_id = send_status_change(here, 8, "hired")
    emptied(here)
    first = only(emails_of(here, event_id))
    publish(here, notifications.send(email_that_nobody_claimed(here, event_id)))
    recorded(here)
    line = only([line for line in feedback_lines_of(here, event_id) if line["outcome"] == "second_email"])
    equal(line["level"], "ERROR")
    equal(only(rows_of(here, event_id))["ses_message_id"], first.message_id)


def the_greeting_of_ses_is_acknowledged(here: cloud.Cloud) -> None:
    here.publish(notifications.GREETING)
    recorded(here)
    only([line for line in here.feedback_log_lines() if line.get("outcome") == "greeting"])


def what_is_no_notification_stays_on_the_queue_and_its_neighbours_are_recorded(here: cloud.Cloud) -> None:
    recorded(here)
    events = [str(uuid.uuid4()) for _ in range(2)]
    before, after = [notifications.bounce(email_that_nobody_claimed(here, event_id)) for event_id in events]
    publish(here, before)
    here.publish("this is no notification")
    publish(here, after)
    until(lambda: all(feedback_of(here, event_id) for event_id in events), "the neighbours are recorded")
    until(lambda: here.unrecorded() == 1, "the other stays on the queue")
    until(lambda: "refused" in [line.get("outcome") for line in here.feedback_log_lines()], "it is logged")
    equal(here.aws.messages_on(here.stack.feedback_queue_url)[0]["Body"], "this is no notification")
    here.purge_notifications()


def only_ses_may_publish_and_only_for_our_configuration_set(here: cloud.Cloud) -> None:
    """Whoever may write to this topic could make `notify` skip an event. The stand-in does not judge this policy."""
    topic = here.aws.client("sns").get_topic_attributes(TopicArn=here.stack.feedback_topic)
    statement = only(json.loads(topic["Attributes"]["Policy"])["Statement"])
    equal((statement["Effect"], statement["Action"]), ("Allow", "sns:Publish"))
    equal(statement["Principal"], {"Service": "ses.amazonaws.com"})
    condition = statement["Condition"]
    equal(condition["StringEquals"], {"aws:SourceAccount": notifications.ACCOUNT})
    source = f"arn:aws:ses:{aws.REGION}:{notifications.ACCOUNT}:configuration-set/{here.stack.configuration_set}"
    equal(condition["ArnEquals"], {"aws:SourceArn": source})


def of_each_email_ses_has_said_once_that_it_took_it(here: cloud.Cloud) -> None:
    recorded(here)
    rows = here.board.rows("SELECT ses_message_id FROM email_feedback WHERE kind = 'send'")
    said = collections.Counter(row["ses_message_id"] for row in rows)
    emails = [email.message_id for email in here.outbox.emails()]
    equal(len(emails) > 200, True)
    equal([message_id for message_id in emails if said[message_id] != 1], [])


def no_address_is_kept_of_what_ses_said(here: cloud.Cloud) -> None:
    equal(here.board.rows("SELECT kind FROM email_feedback WHERE detail::text LIKE '%@%'"), [])


def email_that_nobody_claimed(here: cloud.Cloud, event_id: str) -> Email:
    """One that SES took from a worker that died."""
    request = {
        "FromEmailAddress": cloud.MAIL_FROM,
        "Destination": {"ToAddresses": ["Sam <sam@example.com>"]},
        "Content": {"Simple": {"Subject": {"Data": "Backend Engineer at Acme"}}},
        "ConfigurationSetName": here.stack.configuration_set,
        "EmailTags": [
            {"Name": "event_type", "Value": "application-status_changed"},
            {"Name": "event_id", "Value": event_id},
        ],
    }
    return Email(str(uuid.uuid4()), datetime.now(timezone.utc), request)


def publish(here: cloud.Cloud, notification: notifications.Notification) -> None:
    here.publish(json.dumps(notification))


def feedback_lines_of(here: cloud.Cloud, event_id: str) -> list[dict[str, Any]]:
    return [line for line in here.feedback_log_lines() if line.get("event_id") == event_id]


CHECKS = [
    ses_says_of_an_email_that_it_was_taken_and_delivered,
    a_claim_that_was_never_made_is_completed_by_ses,
    an_email_whose_reply_was_lost_is_settled_by_ses_and_not_sent_again,
    a_bounce_is_recorded_without_an_address,
    a_notification_that_comes_twice_is_one_row,
    a_second_email_for_the_same_event_is_told,
    the_greeting_of_ses_is_acknowledged,
    what_is_no_notification_stays_on_the_queue_and_its_neighbours_are_recorded,
    only_ses_may_publish_and_only_for_our_configuration_set,
]
# Of all that was sent before.
CHECKS_OF_THE_RUN = [
    of_each_email_ses_has_said_once_that_it_took_it,
    no_address_is_kept_of_what_ses_said,
]
