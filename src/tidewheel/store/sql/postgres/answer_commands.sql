-- Scheduler: what became of commands; the first answer counts.
UPDATE tidewheel.command
   SET answered_at = tidewheel.now_seconds(), answer = given.answer, refused = given.refused
  FROM json_to_recordset(%(answers)s::json) AS given (number bigint, answer text, refused text)
 WHERE command.number = ANY (ARRAY[given.number]) AND command.run = %(run)s
   AND command.answered_at IS NULL;
