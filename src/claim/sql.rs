//! The statements of transaction mode on the ledger; those of lease mode are in `lease/`. Names are unqualified: the
//! ledger is in the schema that `search_path` names first.

/// Opens the transaction. Its isolation is named because a role's default can differ, and
/// `ON CONFLICT DO NOTHING` fails under a stricter one; a limit for whole transactions, which Postgres has since 17,
/// would end the claim in mid-send. The setting of our own lasts as long as the transaction: a claim that finds
/// itself outside of one, because `BEGIN` failed, inserts nothing.
pub(super) fn begin(lock_ms: u128, statement_ms: u128, idle_ms: u128) -> String {
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; \
         SET LOCAL lock_timeout = {lock_ms}; \
         SET LOCAL statement_timeout = {statement_ms}; \
         SET LOCAL idle_in_transaction_session_timeout = {idle_ms}; \
         SELECT set_config('onemail.claiming', 'on', true), \
                CASE WHEN current_setting('server_version_num')::int >= 170000 \
                THEN set_config('transaction_timeout', '0', true) END"
    )
}

/// Waits for a neighbour that has inserted the same key and not yet ended its transaction.
pub(super) const CLAIM: &str = "\
    INSERT INTO processed_events (event_id, event_type, outcome, settled_by, payload_sha256)
    SELECT $1, $2, 'sent', 'worker', $3
     WHERE current_setting('onemail.claiming', true) = 'on'
    ON CONFLICT (event_id) DO NOTHING";

/// A statement of its own, since it must see what a neighbour committed while `CLAIM` waited. A claim that SES
/// settled has no payload to compare with until `LEARN_PAYLOAD`. A send in doubt stops all messages but the one that it is of: SQS keeps
/// that one back itself, and if it is handed out, by SQS or by hand, it is to be tried.
pub(super) const STANDING: &str = "\
    SELECT outcome,
           event_type = $3 AND payload_sha256 IN ($2, '') AS same_event,
           payload_sha256 = '' AS payload_unknown,
           extract(epoch FROM coalesce(lease_until, processed_at) - clock_timestamp())::float8 AS lease_s,
           (SELECT extract(epoch FROM in_doubt_until - clock_timestamp())::float8
              FROM sends_in_doubt
             WHERE event_id = $1
               AND in_doubt_until > clock_timestamp()
               AND message_id IS DISTINCT FROM $4) AS in_doubt_s
      FROM processed_events
     WHERE event_id = $1";

/// A lease that ran out and was waited for: the row is ours for as long as the transaction is open, and as it was if
/// that is rolled back.
pub(super) const TAKE_OVER: &str = "\
    UPDATE processed_events
       SET processed_at = clock_timestamp()
     WHERE event_id = $1
       AND outcome = 'sending'
       AND coalesce(lease_until, processed_at) + make_interval(secs => $2) <= clock_timestamp()
       AND current_setting('onemail.claiming', true) = 'on'";

/// The same row, where it shall not be sent again: whoever operates this decides. The attempt stays, should its
/// worker come back after all and tell.
pub(super) const HOLD: &str = "\
    UPDATE processed_events
       SET outcome = 'unknown', lease_until = NULL
     WHERE event_id = $1
       AND outcome = 'sending'
       AND coalesce(lease_until, processed_at) + make_interval(secs => $2) <= clock_timestamp()
       AND current_setting('onemail.claiming', true) = 'on'";

/// SES settled the claim, and doesn't tell the payload: that of the first message that comes is its.
pub(super) const LEARN_PAYLOAD: &str = "\
    UPDATE processed_events
       SET payload_sha256 = $2
     WHERE event_id = $1
       AND payload_sha256 = ''
       AND current_setting('onemail.claiming', true) = 'on'";

/// Within the transaction of the claim.
pub(super) const SET_OUTCOME: &str = "\
    UPDATE processed_events
       SET outcome = $2, ses_message_id = $3, lease_until = NULL
     WHERE event_id = $1
       AND current_setting('onemail.claiming', true) = 'on'";

/// The email may have left or not, and this transaction ends without a claim. Together with `MARK_IN_DOUBT`
/// it leaves the key free, but not at once for everyone.
pub(super) const UNCLAIM: &str = "\
    DELETE FROM processed_events
     WHERE event_id = $1
       AND outcome = 'sent'
       AND current_setting('onemail.claiming', true) = 'on'";

/// The same for a row that was taken over: it is in doubt once more, from now on. Without a number, since it is of
/// no attempt under a lease.
pub(super) const STAY_IN_DOUBT: &str = "\
    UPDATE processed_events
       SET attempt = NULL, lease_until = clock_timestamp()
     WHERE event_id = $1
       AND outcome = 'sending'
       AND current_setting('onemail.claiming', true) = 'on'";

pub(super) const MARK_IN_DOUBT: &str = "\
    INSERT INTO sends_in_doubt AS mark (event_id, message_id, in_doubt_until)
    VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
    ON CONFLICT (event_id) DO UPDATE
       SET message_id = excluded.message_id,
           in_doubt_until = greatest(mark.in_doubt_until, excluded.in_doubt_until)";

/// Writes a claim whose transaction may be lost, for an email that has left. What tells of another email is
/// kept; the result tells whether it is of this one.
pub(super) const RESTORE: &str = "\
    INSERT INTO processed_events AS ledger
           (event_id, event_type, outcome, ses_message_id, settled_by, payload_sha256)
    VALUES ($1, $2, 'sent', $3, 'worker', $4)
    ON CONFLICT (event_id) DO UPDATE
       SET outcome = CASE WHEN ledger.ses_message_id IS NULL
                     THEN 'sent' ELSE ledger.outcome END,
           ses_message_id = coalesce(ledger.ses_message_id, excluded.ses_message_id),
           lease_until = NULL,
           payload_sha256 = CASE ledger.payload_sha256
                            WHEN '' THEN excluded.payload_sha256
                            ELSE ledger.payload_sha256 END
    RETURNING ses_message_id = $3 AS of_this_email";
