-- Report: how many messages of an attempt are stored.
UPDATE lease SET messages = value ->> 'messages'
  FROM json_each(:leases)
 WHERE task_seq = value ->> 'seq';
