-- Claim: the oldest of the highest priority that fit, as many of the first as fit together.
-- One that is exclusive weighs more than all of a claim: as the first it is taken alone, else it ends it.
-- The lock of the task is enough: whoever moves a row of ready holds it. A row that moved since this
-- statement's snapshot is gone from its place, so the task is not taken.
WITH candidate AS MATERIALIZED (
    SELECT ready.ctid AS place, ready.rank, ready.task_seq, ready.cpu, ready.memory_bytes, ready.gpu,
           ready.exclusive, ready.buffer_bytes
      FROM tidewheel.ready JOIN tidewheel.task ON task.seq = ready.task_seq
     WHERE ready.queue = %(queue)s AND NOT ready.delayed AND task.status = 'ready'
       AND ready.cpu <= %(cpu)s AND ready.memory_bytes <= %(memory_bytes)s AND ready.gpu <= %(gpu)s
       AND ready.buffer_bytes <= %(buffer_bytes)s
       AND ready.nodes <= CASE WHEN ready.exclusive THEN %(idle_nodes)s ELSE %(nodes)s END
       AND (ready.labels IS NULL OR ready.labels::jsonb <@ %(labels)s::jsonb)
       AND (NOT ready.has_command OR %(commands)s::boolean)
       AND (ready.has_command OR ready.handler IS NOT NULL OR %(bare)s::boolean)
       AND (ready.handler IS NULL OR %(any_handler)s::boolean
            OR ready.handler = ANY (%(handlers)s::text[]))
     ORDER BY ready.rank, ready.task_seq
     LIMIT %(count)s
       FOR UPDATE OF task SKIP LOCKED
), total AS (
    SELECT place, sum(cpu) OVER earlier AS cpu,
           sum(memory_bytes::float8) OVER earlier AS memory_bytes, sum(gpu) OVER earlier AS gpu,
           sum(buffer_bytes::float8) OVER earlier AS buffer_bytes,
           sum(CASE WHEN exclusive THEN 1000000 ELSE 1 END) OVER earlier AS company
      FROM candidate
    WINDOW earlier AS (ORDER BY rank, task_seq)
), gone AS (
    DELETE FROM tidewheel.ready USING total
     WHERE ready.ctid = total.place
       AND (total.cpu <= %(cpu)s OR round(total.cpu::numeric, 6) <= %(cpu)s)
       AND total.memory_bytes <= %(memory_bytes)s AND total.gpu <= %(gpu)s
       AND total.buffer_bytes <= %(buffer_bytes)s AND total.company <= 1000000
    RETURNING ready.task_seq
), taken AS (
    UPDATE tidewheel.task
       SET status = 'running', attempt = attempt + 1, owner = %(worker)s, progress = 0,
           due_at = NULL, updated_at = (SELECT tidewheel.now_seconds())
      FROM gone
     WHERE task.seq = gone.task_seq
    RETURNING task.seq, task.id, task.queue, task.name, task.attempt, task.spec, task.command,
              task.handler, task.priority, task.timeout_seconds, task.max_termination_seconds,
              task.cpu, task.memory_bytes, task.gpu, task.labels, task.nodes, task.exclusive,
              task.buffer_bytes, task.limit_key, task.run,
              task.updated_at AS now
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
  FROM taken;
