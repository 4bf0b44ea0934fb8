-- Scheduler: events that somebody is to be told of.
INSERT INTO tidewheel.outbox (run, batch, place, body)
SELECT :run, batch, place, body
  FROM json_to_recordset(:events::json) AS put (batch bigint, place bigint, body text);
