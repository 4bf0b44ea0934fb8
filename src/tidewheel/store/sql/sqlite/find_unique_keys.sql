-- Submit: which unique keys are held by tasks that have not ended.
SELECT task.queue, task.held_key, task.id, task.digest
  FROM json_each(:keys) AS wanted
  JOIN task ON task.queue = wanted.value ->> 'queue' AND task.held_key = wanted.value ->> 'key'
 WHERE task.held_key IS NOT NULL;
