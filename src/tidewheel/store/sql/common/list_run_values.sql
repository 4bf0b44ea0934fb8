-- Scheduler and everybody who looks: what some tasks returned, in each of their submissions.
SELECT run_values.point, run_values.name, run_values.submit, run_values.flows, run_values.body
  FROM json_to_recordset(:tasks::json) AS asked (point bigint, name text)
 CROSS JOIN tidewheel.run_values
 WHERE run_values.run = :run
   AND run_values.point = ANY (ARRAY[asked.point])
   AND run_values.name = ANY (ARRAY[asked.name]);
