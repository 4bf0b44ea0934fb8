-- Workers and everybody who looks: what the tasks that a task needs have told; what an earlier attempt told counts until the task has succeeded.
SELECT DISTINCT parent.id, parent.queue, task_values.body
  FROM tidewheel.dependency
  JOIN tidewheel.task AS parent ON parent.seq = dependency.parent
  JOIN tidewheel.task_values ON task_values.task_seq = parent.seq
 WHERE dependency.child = :seq
   AND (task_values.attempt = parent.attempt OR parent.status <> 'succeeded');
