-- Claims the keys of a batch, each once, and tells how each of them stands. What is handled already is only read.
--
-- $1 keys, $2 types, $3 payload hashes, $4 SQS message ids; $5 the number of this attempt, $6 seconds of its lease;
-- $7 seconds for which SES's word may settle a send in doubt, $8 whether it is held after that; $9 milliseconds to
-- wait for a neighbour that has inserted a key and not yet ended its transaction; $10 seconds for which the worker
-- waits for the answer.

WITH patience AS MATERIALIZED (
    -- For this statement alone, and so without a transaction around it.
    SELECT set_config('lock_timeout', $9, true) AS lock_timeout
),
event AS MATERIALIZED (
    SELECT event.event_id, event.event_type, event.payload_sha256, event.message_id
      FROM patience
     CROSS JOIN unnest($1, $2, $3, $4) AS event (event_id, event_type, payload_sha256, message_id)
     WHERE patience.lock_timeout IS NOT NULL
       -- Where Postgres kept the statement waiting until its worker gave it up, a claim would be nobody's.
       AND clock_timestamp() < transaction_timestamp() + make_interval(secs => $10)
),
-- As it stood when the statement began. A claim that SES settled has no payload to compare with, until `learnt`.
found AS MATERIALIZED (
    SELECT event.event_id, event.event_type, event.payload_sha256,
           ledger.outcome,
           ledger.attempt,
           ledger.event_type = event.event_type AND ledger.payload_sha256 IN (event.payload_sha256, '') AS same_event,
           ledger.payload_sha256 = '' AS payload_unknown,
           extract(epoch FROM coalesce(ledger.lease_until, ledger.processed_at) - clock_timestamp())::float8 AS lease_s,
           extract(epoch FROM doubt.in_doubt_until - clock_timestamp())::float8 AS in_doubt_s
      FROM event
      LEFT JOIN processed_events AS ledger ON ledger.event_id = event.event_id
      LEFT JOIN sends_in_doubt AS doubt ON doubt.event_id = event.event_id
                                       AND doubt.in_doubt_until > clock_timestamp()
                                       AND doubt.message_id IS DISTINCT FROM event.message_id
),
-- In one order, so that two batches never wait for each other.
inserted AS (
    INSERT INTO processed_events
           (event_id, event_type, outcome, settled_by, payload_sha256, attempt, lease_until)
    SELECT event_id, event_type, 'sending', 'worker', payload_sha256,
           $5, clock_timestamp() + make_interval(secs => $6)
      FROM found
     WHERE outcome IS NULL
       AND in_doubt_s IS NULL
     ORDER BY event_id
    ON CONFLICT (event_id) DO NOTHING
    RETURNING event_id
),
-- A lease that ran out and was waited for. Nobody waits for a lock here: whoever has it is at work on the same event.
overdue AS MATERIALIZED (
    SELECT ledger.event_id
      FROM processed_events AS ledger
     WHERE ledger.event_id IN (SELECT event_id
                                 FROM found
                                WHERE outcome = 'sending'
                                  AND same_event
                                  AND attempt IS DISTINCT FROM $5
                                  AND in_doubt_s IS NULL
                                  AND lease_s + $7 <= 0)
       AND ledger.outcome = 'sending'
       AND coalesce(ledger.lease_until, ledger.processed_at) + make_interval(secs => $7) <= clock_timestamp()
       FOR UPDATE SKIP LOCKED
),
-- Held, the attempt stays, should its worker come back after all and tell.
decided AS (
    UPDATE processed_events AS ledger
       SET outcome = CASE WHEN $8 THEN 'unknown' ELSE 'sending' END,
           attempt = CASE WHEN $8 THEN ledger.attempt ELSE $5 END,
           lease_until = CASE WHEN $8 THEN NULL ELSE clock_timestamp() + make_interval(secs => $6) END,
           processed_at = CASE WHEN $8 THEN ledger.processed_at ELSE clock_timestamp() END
      FROM overdue
     WHERE ledger.event_id = overdue.event_id
    RETURNING ledger.event_id, ledger.outcome
),
-- From now on another event under this key is known to be one.
learnt AS (
    UPDATE processed_events AS ledger
       SET payload_sha256 = unread.payload_sha256
      FROM (SELECT ledger.event_id, found.payload_sha256
              FROM found
              JOIN processed_events AS ledger ON ledger.event_id = found.event_id
             WHERE found.payload_unknown
               AND found.same_event
               AND ledger.payload_sha256 = ''
               FOR UPDATE OF ledger SKIP LOCKED) AS unread
     WHERE ledger.event_id = unread.event_id
    RETURNING ledger.event_id
)
SELECT found.event_id,
       inserted.event_id IS NOT NULL
           OR decided.outcome IS NOT DISTINCT FROM 'sending'
           -- The answer to this very claim was lost, and it is made again.
           OR found.outcome IS NOT DISTINCT FROM 'sending' AND found.attempt IS NOT DISTINCT FROM $5 AS won,
       coalesce(decided.outcome, found.outcome) AS outcome,
       found.same_event,
       found.payload_unknown AND learnt.event_id IS NULL AS payload_unknown,
       found.lease_s,
       found.in_doubt_s
  FROM found
  LEFT JOIN inserted ON inserted.event_id = found.event_id
  LEFT JOIN decided ON decided.event_id = found.event_id
  LEFT JOIN learnt ON learnt.event_id = found.event_id
