-- Cascade: one entry per step.
INSERT INTO tidewheel.history (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
SELECT seq, tidewheel.now_seconds(), signal, from_status, to_status, attempt, worker, progress
  FROM json_to_recordset(:changes::json) AS change (
           seq bigint, signal text, from_status text, to_status text, attempt integer, worker text,
           progress float8);
