-- Operators: a command for a run that somebody drives. Whoever ends the run at this moment does it before this or after
-- this, and sees the command then.
INSERT INTO tidewheel.command (run, at, who, body)
SELECT number, tidewheel.now_seconds(), %(who)s, %(body)s
  FROM tidewheel.run
 WHERE number = %(run)s AND deadline_at > tidewheel.now_seconds()
   FOR NO KEY UPDATE
RETURNING number;
