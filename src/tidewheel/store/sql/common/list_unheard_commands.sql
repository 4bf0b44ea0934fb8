-- Scheduler: commands that a run has not dealt with yet, oldest first.
SELECT command.body FROM tidewheel.event JOIN tidewheel.command ON command.number = event.command
 WHERE event.run = :run
 ORDER BY event.seq;
