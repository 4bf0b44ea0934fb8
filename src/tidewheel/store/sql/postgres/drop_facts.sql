-- Scheduler: chains that lead nowhere any more.
DELETE FROM tidewheel.run_fact
 USING json_to_recordset(:facts::json) AS gone (kind text, key text)
 WHERE run_fact.run = :run
   AND run_fact.kind = ANY (ARRAY[gone.kind])
   AND run_fact.key = ANY (ARRAY[gone.key]);
