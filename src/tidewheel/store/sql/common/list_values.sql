-- Schedulers and everybody who looks: what tasks handed to those after them.
SELECT task.id, task_values.body
  FROM tidewheel.task JOIN tidewheel.task_values ON task_values.task_seq = task.seq
 WHERE task.id = ANY (:ids::text[]) AND task_values.attempt = task.attempt;
