-- Operators: a command for a run that has ended, kept until somebody drives it again.
INSERT INTO tidewheel.command (run, at, who, body)
VALUES (:run, tidewheel.now_seconds(), :who, :body)
RETURNING number;
