-- Scheduler: timers that fired or are not wanted any more.
DELETE FROM timer
 WHERE run = :run AND (point, name, timer) IN (
           SELECT value ->> 'point', value ->> 'name', value ->> 'timer' FROM jsonb_each(:timers));
