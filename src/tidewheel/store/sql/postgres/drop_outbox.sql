-- Scheduler: events that everybody was told of.
DELETE FROM tidewheel.outbox
 USING json_to_recordset(%(events)s::json) AS gone (batch bigint, place bigint)
 WHERE outbox.run = %(run)s AND outbox.batch = gone.batch AND outbox.place = gone.place;
