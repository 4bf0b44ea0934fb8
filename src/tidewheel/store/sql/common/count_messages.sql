-- Report: how many messages of an attempt are stored.
UPDATE tidewheel.lease SET messages = said.messages
  FROM json_to_recordset(:leases::json) AS said (seq bigint, messages integer)
 WHERE task_seq = ANY (ARRAY[said.seq]);
