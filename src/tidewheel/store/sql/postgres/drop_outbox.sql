-- Scheduler: events that everybody was told of.
DELETE FROM tidewheel.outbox
 USING json_to_recordset(:events::json) AS gone (batch bigint, place bigint)
 WHERE outbox.run = :run AND outbox.batch = gone.batch AND outbox.place = gone.place;
