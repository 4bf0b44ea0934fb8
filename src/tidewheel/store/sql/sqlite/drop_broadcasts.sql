-- Scheduler: settings that were taken back.
DELETE FROM broadcast
 WHERE run = :run AND (point, namespace, setting) IN (
           SELECT value ->> 'point', value ->> 'namespace', value ->> 'setting' FROM jsonb_each(:broadcasts));
