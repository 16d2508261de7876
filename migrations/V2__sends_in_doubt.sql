-- Sends of which the worker never learnt whether SES took them, in transaction mode. The claim is released, but
-- another message of the same event must wait, so that a notification from SES can settle it first.

CREATE TABLE sends_in_doubt (
    event_id        varchar(64)  PRIMARY KEY,
    message_id      text,
    in_doubt_until  timestamptz  NOT NULL
);

COMMENT ON TABLE  sends_in_doubt IS 'Sends whose outcome nobody learnt.';
COMMENT ON COLUMN sends_in_doubt.message_id IS 'The SQS message that may try again; SQS keeps it back meanwhile.';

-- For the cleanup of old rows.
CREATE INDEX sends_in_doubt_until ON sends_in_doubt (in_doubt_until);
