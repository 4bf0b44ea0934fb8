-- Claim from a fair queue: these keys had their turns; '' stands for tasks without a key.
INSERT INTO tidewheel.lane (queue, key, turn, rank, task_seq, closed)
SELECT :queue, key, turn, 0, 0, true
  FROM json_to_recordset(:lanes::json) AS had (key text, turn bigint)
 WHERE true
    ON CONFLICT (key, queue) DO UPDATE SET turn = excluded.turn;
