-- Events: steps of tasks behind a place.
SELECT history.seq AS major, 0 AS minor, history.at, task.id AS task_id, task.queue, task.name,
       run.name AS run,
       history.signal, history.from_status, history.to_status, history.attempt, history.worker,
       history.progress, attempt.exit_status
  FROM history
  JOIN task ON task.seq = history.task_seq
  LEFT JOIN attempt ON attempt.task_seq = history.task_seq AND attempt.attempt = history.attempt
                   AND attempt.ended_by = history.signal
  LEFT JOIN run ON run.number = task.run
 WHERE history.seq > :major
 ORDER BY history.seq LIMIT :count;
