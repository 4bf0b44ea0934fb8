-- Operators: a command for a run that somebody drives.
INSERT INTO command (run, at, who, body)
SELECT number, now_seconds(), :who, :body FROM run WHERE number = :run AND deadline_at > now_seconds()
RETURNING number;
