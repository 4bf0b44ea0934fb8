-- Events: steps of tasks behind a place.
SELECT history.seq, 0, history.at, task.id, task.queue, task.name, run.name,
       history.signal, history.from_status, history.to_status, history.attempt, history.worker,
       history.progress
  FROM history
  JOIN task ON task.seq = history.task_seq
  LEFT JOIN run ON run.number = task.run
 WHERE history.seq > :major
 ORDER BY history.seq LIMIT :count;
