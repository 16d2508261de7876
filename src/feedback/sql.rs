//! All statements of `feedback`.

/// It waits but shortly for a worker in mid-send, which holds the key: the notification comes back.
pub(super) const BEGIN: &str = "\
    BEGIN ISOLATION LEVEL READ COMMITTED; \
    SET LOCAL lock_timeout = 2000; \
    SET LOCAL statement_timeout = 5000; \
    SET LOCAL idle_in_transaction_session_timeout = 5000";

/// The same notification twice leaves one row; one that came without our tags before gets its key.
pub(super) const RECORD: &str = "\
    INSERT INTO email_feedback AS said (event_id, ses_message_id, kind, occurred_at, detail)
    VALUES ($1, $2, $3, $4::text::timestamptz, $5)
    ON CONFLICT (coalesce(ses_message_id, ''), kind, occurred_at) DO UPDATE
       SET event_id = excluded.event_id
     WHERE said.event_id IS NULL AND excluded.event_id IS NOT NULL";

/// SES took the email, so its claim must stand: inserted where a worker died before it could commit, completed
/// where one is in doubt. A claim that was committed keeps what it says; only a missing message id is filled in.
/// The payload isn't known here, and is left empty.
pub(super) const SETTLE: &str = "\
    INSERT INTO processed_events AS ledger
           (event_id, event_type, outcome, ses_message_id, settled_by, payload_sha256)
    VALUES ($1, $2, 'sent', $3, 'ses', '')
    ON CONFLICT (event_id) DO UPDATE
       SET ses_message_id = coalesce(ledger.ses_message_id, excluded.ses_message_id),
           settled_by = CASE WHEN ledger.outcome IN ('sending', 'unknown')
                        THEN 'ses' ELSE ledger.settled_by END,
           processed_at = CASE WHEN ledger.outcome IN ('sending', 'unknown')
                          THEN now() ELSE ledger.processed_at END,
           lease_until = NULL,
           outcome = CASE WHEN ledger.outcome IN ('sending', 'unknown')
                     THEN 'sent' ELSE ledger.outcome END
     WHERE ledger.outcome IN ('sending', 'unknown') OR ledger.ses_message_id IS NULL
    RETURNING settled_by = 'ses' AS by_ses";

/// The same by what SES says later of the email, where a row stands that is in doubt. None is inserted: that would wait
/// for a worker in mid-send, and what happened to an email is recorded at once.
pub(super) const COMPLETE: &str = "\
    UPDATE processed_events
       SET ses_message_id = coalesce(ses_message_id, $3),
           settled_by = 'ses',
           processed_at = now(),
           lease_until = NULL,
           outcome = 'sent'
     WHERE event_id = $1
       AND event_type = $2
       AND outcome IN ('sending', 'unknown')
    RETURNING true AS by_ses";

/// Which email the ledger tells of, after `SETTLE`.
pub(super) const STANDING: &str = "\
    SELECT ses_message_id = $2 AS same_email
      FROM processed_events
     WHERE event_id = $1";
