-- Looking: the commands of a run, newest first.
SELECT number, run, at, who, body, answered_at, answer, refused
  FROM tidewheel.command WHERE run = :run ORDER BY number DESC LIMIT :count;
