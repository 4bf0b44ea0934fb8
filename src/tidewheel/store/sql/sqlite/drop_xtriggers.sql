-- Scheduler: calls that are to be made anew.
DELETE FROM xtrigger
 WHERE run = :run AND (signature) IN (SELECT value ->> 'signature' FROM json_each(:xtriggers));
