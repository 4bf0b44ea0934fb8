-- Scheduler: what it has not dealt with yet, oldest first, with the database's clock.
SELECT event.seq, event.at, event.kind, event.task_id, event.attempt, event.text, event.output,
       event.status, event.error_code, event.error, event.exit_status, event.told,
       event.command AS number, command.who, command.body,
       tidewheel.now_seconds() AS now
  FROM tidewheel.event LEFT JOIN tidewheel.command ON command.number = event.command
 WHERE event.run = :run
 ORDER BY event.seq LIMIT :count;
