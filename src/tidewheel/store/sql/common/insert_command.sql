-- Operators: a command for a run that somebody drives; locked, so that whoever ends the run has done so or sees this.
INSERT INTO tidewheel.command (run, at, who, body)
SELECT number, tidewheel.now_seconds(), :who, :body
  FROM tidewheel.run
 WHERE number = :run AND deadline_at > tidewheel.now_seconds()
   FOR NO KEY UPDATE
RETURNING number;
