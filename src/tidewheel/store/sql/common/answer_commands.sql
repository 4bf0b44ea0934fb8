-- Scheduler: what became of commands; the first answer counts.
-- The plus leaves one way to a command: by its number.
UPDATE tidewheel.command
   SET answered_at = tidewheel.now_seconds(), answer = given.answer, refused = given.refused
  FROM json_to_recordset(:answers::json) AS given (number bigint, answer text, refused text)
 WHERE command.number = ANY (ARRAY[given.number]) AND +command.run = :run
   AND command.answered_at IS NULL;
