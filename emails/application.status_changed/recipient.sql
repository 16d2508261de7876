-- The candidate of the application. No row: the application was deleted, and no email is sent.
-- Runs of white space become one space, so that no name or title can break a line of the text.
-- No backslash and the collation "C", so that the words are the same whatever the database's settings are.
SELECT
    u.email AS to_address,
    btrim(regexp_replace(concat_ws(' ', u.first_name, u.last_name) COLLATE "C", '[[:space:]]+', ' ', 'g')) AS to_name,
    btrim(regexp_replace(u.first_name COLLATE "C", '[[:space:]]+', ' ', 'g')) AS first_name,
    btrim(regexp_replace(job.title COLLATE "C", '[[:space:]]+', ' ', 'g')) AS job_title,
    btrim(regexp_replace(company.name COLLATE "C", '[[:space:]]+', ' ', 'g')) AS company_name,
    candidate.locale,
    u.id AS user_id
FROM jobs_application AS application
JOIN jobs_candidate AS candidate ON candidate.id = application.candidate_id
JOIN auth_user AS u ON u.id = candidate.user_id
JOIN jobs_job AS job ON job.id = application.job_id
JOIN jobs_company AS company ON company.id = job.company_id
WHERE application.id = ($1::jsonb -> 'application_id')::bigint
