-- Claim by id, adopt: what a worker needs to execute a task.
SELECT seq, id, queue, name, attempt, spec, command, handler,
       priority, timeout_seconds, max_termination_seconds, cpu,
       memory_bytes, gpu, labels, nodes, exclusive, buffer_bytes, limit_key, run,
       tidewheel.now_seconds() AS now
  FROM tidewheel.task WHERE seq = :seq;
