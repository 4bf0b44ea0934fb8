-- Scheduler: what became of commands; the first answer counts.
-- The plus leaves one way to a command: by its number.
UPDATE command
   SET answered_at = now_seconds(), answer = given.answer, refused = given.refused
  FROM (SELECT value ->> 'number' AS number, value ->> 'answer' AS answer,
               value ->> 'refused' AS refused
          FROM json_each(:answers)) AS given
 WHERE command.number = given.number AND +command.run = :run AND command.answered_at IS NULL;
