-- Scheduler: calls that are to be made anew.
DELETE FROM xtrigger
 WHERE run = :run AND (signature) IN (SELECT value ->> 'signature' FROM jsonb_each(:xtriggers));
