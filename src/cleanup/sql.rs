//! All statements of `cleanup`.
//!
//! Each takes `$1`, where the batch before ended, `$2`, the age in days, and `$3`, how much a batch may take; and
//! answers with `more`, whether another batch may find something, `changed`, the rows it changed, and `next`, where to
//! go on. Going on there saves walking again over the index entries of what was just deleted, which stay until a vacuum.
//!
//! The deletions differ in table, column and condition alone. Each is written out, so that it is found by its table, and
//! can be read and tried as it stands.

/// On the server's side, too, a batch is over in a second; its commit doesn't wait for the disk with its locks held,
/// since a deletion that a crash undoes is made again. Times are passed on as text.
pub(super) const BEGIN: &str = "\
    BEGIN ISOLATION LEVEL READ COMMITTED; \
    SET LOCAL lock_timeout = 500; \
    SET LOCAL statement_timeout = 900; \
    SET LOCAL idle_in_transaction_session_timeout = 5000; \
    SET LOCAL synchronous_commit = off; \
    SET LOCAL DateStyle = 'ISO'";

/// A row that somebody works on is left for the next run. `sending` and `unknown` are never forgotten: their email
/// is owed, or nobody knows.
pub(super) const DELETE_PROCESSED_EVENTS: &str = "\
    WITH old AS MATERIALIZED (
         SELECT ctid, processed_at AS at
           FROM processed_events
          WHERE processed_at >= $1::timestamptz
            AND processed_at < now() - make_interval(days => $2)
            AND outcome NOT IN ('sending', 'unknown')
          ORDER BY processed_at
          LIMIT $3
            FOR UPDATE SKIP LOCKED),
         gone AS (
         DELETE FROM processed_events
          WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
         RETURNING true)
    SELECT (SELECT count(*) FROM old) >= $3 AS more,
           (SELECT count(*) FROM gone) AS changed,
           (SELECT max(at)::text FROM old) AS next";

pub(super) const DELETE_EMAIL_FEEDBACK: &str = "\
    WITH old AS MATERIALIZED (
         SELECT ctid, occurred_at AS at
           FROM email_feedback
          WHERE occurred_at >= $1::timestamptz
            AND occurred_at < now() - make_interval(days => $2)
          ORDER BY occurred_at
          LIMIT $3
            FOR UPDATE SKIP LOCKED),
         gone AS (
         DELETE FROM email_feedback
          WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
         RETURNING true)
    SELECT (SELECT count(*) FROM old) >= $3 AS more,
           (SELECT count(*) FROM gone) AS changed,
           (SELECT max(at)::text FROM old) AS next";

pub(super) const DELETE_SENDS_IN_DOUBT: &str = "\
    WITH old AS MATERIALIZED (
         SELECT ctid, in_doubt_until AS at
           FROM sends_in_doubt
          WHERE in_doubt_until >= $1::timestamptz
            AND in_doubt_until < now() - make_interval(days => $2)
          ORDER BY in_doubt_until
          LIMIT $3
            FOR UPDATE SKIP LOCKED),
         gone AS (
         DELETE FROM sends_in_doubt
          WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
         RETURNING true)
    SELECT (SELECT count(*) FROM old) >= $3 AS more,
           (SELECT count(*) FROM gone) AS changed,
           (SELECT max(at)::text FROM old) AS next";

/// `$1` and `$3` are blocks of the table. No index tells what is `sending`, since it would have to be kept up with
/// each email: the rows themselves are looked at, all of them, without a lock but on those that are found.
pub(super) const HOLD: &str = "\
    WITH abandoned AS MATERIALIZED (
         SELECT ctid
           FROM processed_events
          WHERE ctid >= ('(' || $1 || ',0)')::tid
            AND ctid < ('(' || $1::bigint + $3 || ',0)')::tid
            AND outcome = 'sending'
            AND coalesce(lease_until, processed_at) < now() - make_interval(days => $2)
            FOR UPDATE SKIP LOCKED),
         held AS (
         UPDATE processed_events
            SET outcome = 'unknown', lease_until = NULL
          WHERE ctid = ANY (ARRAY(SELECT ctid FROM abandoned))
         RETURNING true)
    SELECT $1::bigint + $3 < pg_relation_size(to_regclass('processed_events'))
                             / current_setting('block_size')::bigint AS more,
           (SELECT count(*) FROM held) AS changed,
           ($1::bigint + $3)::text AS next";
