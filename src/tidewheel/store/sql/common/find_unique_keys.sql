-- Submit: which unique keys are held by tasks that have not ended.
SELECT task.queue, task.held_key, task.id, task.digest
  FROM json_to_recordset(:keys::json) AS wanted (queue text, key text)
  JOIN tidewheel.task ON task.queue = wanted.queue AND task.held_key = wanted.key
 WHERE task.held_key IS NOT NULL;
