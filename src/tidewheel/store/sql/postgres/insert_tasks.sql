-- Submit: store new tasks with their first history entry; a known id is left out.
WITH made AS (
    INSERT INTO tidewheel.task (
        id, queue, name, spec, command, handler, priority, status, max_retries, retry, max_lapses,
        timeout_seconds, estimated_runtime_seconds, max_termination_seconds, cpu, memory_bytes,
        gpu, labels, nodes, exclusive, buffer_bytes, unique_key, limit_key, tag, armed, executes,
        digest, run, held_key, due_at,
        created_at, updated_at)
    SELECT id, queue, name, spec, command, handler, priority, status, max_retries, retry,
           max_lapses, timeout_seconds, estimated_runtime_seconds, max_termination_seconds, cpu,
           memory_bytes, gpu, labels, nodes, exclusive, buffer_bytes, unique_key, limit_key, tag,
           armed, executes, digest, run, unique_key,
           CASE WHEN delay_seconds > 0 THEN clock.now + delay_seconds END,
           clock.now, clock.now
      FROM json_to_recordset(%(tasks)s::json) AS new (
               id text, queue text, name text, spec text, command text, handler text,
               priority bigint, status text, max_retries integer, retry text,
               max_lapses integer, timeout_seconds float8, estimated_runtime_seconds float8,
               max_termination_seconds float8, cpu float8, memory_bytes bigint, gpu integer,
               labels text, nodes integer, exclusive boolean, buffer_bytes bigint,
               unique_key text, limit_key text, tag text, armed boolean,
               executes boolean, digest text, run bigint, delay_seconds float8),
           (SELECT tidewheel.now_seconds() AS now) AS clock
        ON CONFLICT (id) DO NOTHING
    RETURNING id, seq, queue, command, handler, priority, status, cpu, memory_bytes, gpu, labels,
              nodes, exclusive, buffer_bytes, limit_key, due_at, created_at
), told AS (
    INSERT INTO tidewheel.history (task_seq, at, to_status, attempt, progress)
    SELECT seq, created_at, status, 0, 0 FROM made
), queued AS (
    INSERT INTO tidewheel.ready (queue, delayed, rank, task_seq, due_at, ready_at, cpu,
                                 memory_bytes, gpu, labels, nodes, exclusive, buffer_bytes,
                                 has_command, handler, limit_key)
    SELECT queue, due_at IS NOT NULL, -priority, seq, due_at, created_at, cpu, memory_bytes, gpu,
           labels, nodes, exclusive, buffer_bytes, command IS NOT NULL, handler, limit_key
      FROM made
     WHERE status = 'ready'
)
SELECT id, seq FROM made;
