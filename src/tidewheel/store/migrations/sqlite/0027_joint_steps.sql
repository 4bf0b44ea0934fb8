-- Every step of every task (SQLite), which PostgreSQL stores in two ways.

CREATE VIEW step AS
SELECT seq, task_seq, at, signal, from_status, to_status, attempt, worker, progress FROM history;
