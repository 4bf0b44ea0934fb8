-- Scheduler: events that somebody is to be told of.
INSERT INTO outbox (run, batch, place, body)
SELECT :run, value ->> 'batch', value ->> 'place', value ->> 'body' FROM json_each(:events);
