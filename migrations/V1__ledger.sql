-- The ledger: one row for each event that was handled. A row is inserted in the transaction that sends the
-- email, so that it is there when the email is, and not when it isn't.

CREATE TABLE processed_events (
    event_id        varchar(64)  PRIMARY KEY,
    event_type      varchar(100) NOT NULL,
    processed_at    timestamptz  NOT NULL DEFAULT now(),
    outcome         text         NOT NULL
        CONSTRAINT processed_events_outcome
        CHECK (outcome IN ('sent', 'skipped', 'withheld', 'sending', 'unknown')),
    ses_message_id  text,
    settled_by      text         NOT NULL
        CONSTRAINT processed_events_settled_by
        CHECK (settled_by IN ('worker', 'ses', 'operator')),
    payload_sha256  bytea        NOT NULL
);

COMMENT ON TABLE  processed_events IS 'One row for each event that onemail has handled.';
COMMENT ON COLUMN processed_events.event_id IS 'The idempotency key: the identity of the change, never of the delivery.';
COMMENT ON COLUMN processed_events.outcome IS 'sent, skipped (nobody to write to), withheld (not on the allow list); in lease mode also sending, unknown.';
COMMENT ON COLUMN processed_events.ses_message_id IS 'As SES returned it.';
COMMENT ON COLUMN processed_events.settled_by IS 'worker, ses (a notification from SES completed it) or operator.';
COMMENT ON COLUMN processed_events.payload_sha256 IS 'Of the event in canonical form: the same key with another payload is refused.';

-- For the cleanup of old rows.
CREATE INDEX processed_events_processed_at ON processed_events (processed_at);

-- What SES said of each email.
CREATE TABLE email_feedback (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id        varchar(64),
    ses_message_id  text,
    kind            text         NOT NULL,
    occurred_at     timestamptz  NOT NULL,
    detail          jsonb        NOT NULL DEFAULT '{}'
);

COMMENT ON TABLE  email_feedback IS 'One row for each thing that SES said of an email.';
COMMENT ON COLUMN email_feedback.event_id IS 'The idempotency key, from the tags of the email; null for an email that is not ours.';

-- The same notification twice leaves one row.
CREATE UNIQUE INDEX email_feedback_once
    ON email_feedback (coalesce(ses_message_id, ''), kind, occurred_at);
CREATE INDEX email_feedback_event_id ON email_feedback (event_id);
CREATE INDEX email_feedback_occurred_at ON email_feedback (occurred_at);
