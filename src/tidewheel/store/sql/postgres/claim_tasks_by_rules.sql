-- Claim from a queue with aging or limits: looks at every ready task of the queue.
-- It answers in the order of priority with its aging.
WITH candidate AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes, limit_key,
           CASE WHEN %(aging)s::boolean AND -rank < 255
                THEN least(255, -rank + floor(clock.now - ready_at))
                ELSE -rank END AS aged
      FROM tidewheel.ready, (SELECT tidewheel.now_seconds() AS now) AS clock
     WHERE queue = %(queue)s AND NOT delayed
       AND ready.cpu <= %(cpu)s AND ready.memory_bytes <= %(memory_bytes)s AND ready.gpu <= %(gpu)s
       AND ready.buffer_bytes <= %(buffer_bytes)s
       AND ready.nodes <= CASE WHEN ready.exclusive THEN %(idle_nodes)s ELSE %(nodes)s END
       AND (ready.labels IS NULL OR ready.labels::jsonb <@ %(labels)s::jsonb)
       AND (NOT ready.has_command OR %(commands)s::boolean)
       AND (ready.has_command OR ready.handler IS NOT NULL OR %(bare)s::boolean)
       AND (ready.handler IS NULL OR %(any_handler)s::boolean
            OR ready.handler = ANY (%(handlers)s::text[]))
), numbered AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes, limit_key, aged,
           row_number() OVER (PARTITION BY limit_key ORDER BY aged DESC, task_seq) AS of_key
      FROM candidate
), chosen AS (
    SELECT rank, task_seq, cpu, memory_bytes, gpu, exclusive, buffer_bytes,
           row_number() OVER (ORDER BY aged DESC, task_seq) AS place
      FROM numbered
     WHERE limit_key IS NULL
        OR of_key <= coalesce(
               (SELECT rule.count
                  FROM json_to_recordset(%(by_key)s::json) AS rule (key text, count integer)
                 WHERE rule.key = limit_key), %(each_key)s)
     ORDER BY place
     LIMIT least(%(count)s, %(whole_queue)s)
), locked AS MATERIALIZED (
    SELECT ready.ctid AS row, ready.cpu, ready.memory_bytes, ready.gpu,
           ready.exclusive, ready.buffer_bytes, chosen.place
      FROM chosen
      JOIN tidewheel.ready ON ready.queue = %(queue)s AND NOT ready.delayed
                          AND ready.rank = chosen.rank AND ready.task_seq = chosen.task_seq
      JOIN tidewheel.task ON task.seq = ready.task_seq
     ORDER BY chosen.place
       FOR UPDATE OF ready, task SKIP LOCKED
), total AS (
    SELECT locked.row, locked.place, sum(cpu) OVER earlier AS cpu,
           sum(memory_bytes::float8) OVER earlier AS memory_bytes, sum(gpu) OVER earlier AS gpu,
           sum(buffer_bytes::float8) OVER earlier AS buffer_bytes,
           sum(CASE WHEN exclusive THEN 1000000 ELSE 1 END) OVER earlier AS company
      FROM locked
    WINDOW earlier AS (ORDER BY place)
), gone AS (
    DELETE FROM tidewheel.ready USING total
     WHERE ready.ctid = total.row
       AND round(total.cpu::numeric, 6) <= %(cpu)s
       AND total.memory_bytes <= %(memory_bytes)s AND total.gpu <= %(gpu)s
       AND total.buffer_bytes <= %(buffer_bytes)s AND total.company <= 1000000
    RETURNING ready.task_seq, total.place
), taken AS (
    UPDATE tidewheel.task
       SET status = 'running', attempt = attempt + 1, owner = %(worker)s, progress = 0,
           due_at = NULL, updated_at = tidewheel.now_seconds()
      FROM gone
     WHERE task.seq = gone.task_seq
    RETURNING task.seq, task.id, task.queue, task.name, task.attempt, task.spec, task.command,
              task.handler, task.priority, task.timeout_seconds, task.max_termination_seconds,
              task.cpu, task.memory_bytes, task.gpu, task.labels, task.nodes, task.exclusive,
              task.buffer_bytes, task.limit_key, task.run,
              tidewheel.now_seconds() AS now, gone.place
), leased AS (
    INSERT INTO tidewheel.lease
           (task_seq, attempt, owner, queue, limit_key, claimed_at, lease_seconds, deadline_at)
    SELECT seq, attempt, %(worker)s, queue, limit_key, now, %(lease_seconds)s,
           now + %(lease_seconds)s
      FROM taken
), told AS (
    INSERT INTO tidewheel.history
           (task_seq, at, signal, from_status, to_status, attempt, worker, progress)
    SELECT seq, now, 'claim', 'ready', 'running', attempt, %(worker)s, 0
      FROM taken
)
SELECT seq, id, queue, name, attempt, spec, command, handler,
       priority, timeout_seconds, max_termination_seconds, cpu,
       memory_bytes, gpu, labels, nodes, exclusive, buffer_bytes, limit_key, run, now
  FROM taken
 ORDER BY place;
