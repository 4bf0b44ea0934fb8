-- Operators: a command for a run that has ended, kept until somebody drives it again.
INSERT INTO command (run, at, who, body)
VALUES (:run, now_seconds(), :who, :body)
RETURNING number;
