-- Scheduler: the database's clock, and what it has not dealt with yet, oldest first.
-- Without any there is one row, with the clock alone; none, if there is no such run.
SELECT event.seq, event.at, event.kind, event.task_id, event.attempt, event.text, event.output,
       event.status, event.error_code, event.error, event.exit_status, event.told,
       event.command AS number, command.who, command.body,
       tidewheel.now_seconds() AS now
  FROM tidewheel.run LEFT JOIN tidewheel.event ON event.run = run.number
       LEFT JOIN tidewheel.command ON command.number = event.command
 WHERE run.number = :run
 ORDER BY event.seq LIMIT :count;
