-- The contact of the order. No row: the order was deleted, and no email is sent.
-- Runs of white space become one space, so that no name or item can break a line of the text.
-- No backslash and the collation "C", so that the words are the same whatever the database's settings are.
-- The total is text, exact to its last digit: total_cents counts the currency's smallest unit, which ISO 4217 puts
-- at a whole (yen), a thousandth (dinar) or, for most, a hundredth. Multiplied, since a numeric division may round.
SELECT
    o.contact_email AS to_address,
    btrim(regexp_replace(company.name COLLATE "C", '[[:space:]]+', ' ', 'g')) AS to_name,
    btrim(regexp_replace(company.name COLLATE "C", '[[:space:]]+', ' ', 'g')) AS company_name,
    btrim(regexp_replace(o.item COLLATE "C", '[[:space:]]+', ' ', 'g')) AS item,
    upper(o.currency COLLATE "C") || ' ' || CASE
        WHEN upper(o.currency COLLATE "C") IN ('BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'VND', 'VUV', 'XAF', 'XOF', 'XPF')
            THEN to_char(o.total_cents, 'FM9,999,999,999,999,999,990')
        WHEN upper(o.currency COLLATE "C") IN ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND')
            THEN to_char(o.total_cents * 0.001, 'FM9,999,999,999,999,999,990.000')
        ELSE to_char(o.total_cents * 0.01, 'FM9,999,999,999,999,999,990.00')
    END AS total
FROM billing_order AS o
JOIN jobs_company AS company ON company.id = o.company_id
WHERE o.id = ($1::jsonb -> 'order_id')::bigint
