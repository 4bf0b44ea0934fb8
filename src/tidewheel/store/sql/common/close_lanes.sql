-- Claim by rules: the rates of these keys leave no room for a while.
UPDATE tidewheel.lane SET closed = true, opens_at = shut.opens_at
  FROM json_to_recordset(:lanes::json) AS shut (key text, opens_at float8)
 WHERE lane.key = shut.key AND lane.queue = :queue;
