-- Scheduler: events of a run that nobody was told of yet, oldest first.
SELECT batch, place, body FROM tidewheel.outbox WHERE run = :run ORDER BY batch, place;
