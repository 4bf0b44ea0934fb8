-- Scheduler: events that everybody was told of.
DELETE FROM outbox
 WHERE run = :run
   AND (batch, place) IN (SELECT value ->> 'batch', value ->> 'place' FROM jsonb_each(:events));
