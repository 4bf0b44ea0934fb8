-- Scheduler: chains that lead nowhere any more.
DELETE FROM run_fact
 WHERE run = :run AND (kind, key) IN (SELECT value ->> 'kind', value ->> 'key' FROM jsonb_each(:facts));
