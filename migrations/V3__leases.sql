-- Lease mode: a key is claimed as 'sending' in a transaction of its own, under a lease that outlives its worker.
-- Where the lease ran out and nobody settled the row, the send is in doubt.

ALTER TABLE processed_events
    ADD COLUMN attempt      bigint,
    ADD COLUMN lease_until  timestamptz;

COMMENT ON COLUMN processed_events.attempt IS 'Which attempt the row is of: a random number, never used twice. What another attempt writes late changes nothing.';
COMMENT ON COLUMN processed_events.lease_until IS 'Of a row that is sending: by then its worker is gone, and its send in doubt. Null where it is not sending.';
