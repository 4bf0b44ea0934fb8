-- Submit: store a new task; an id that is stored already is left out.
INSERT INTO task (
    id, queue, name, spec, command, handler, priority, status, max_retries, retry, max_lapses,
    timeout_seconds, estimated_runtime_seconds, max_termination_seconds, cpu, memory_bytes,
    gpu, labels, nodes, exclusive, buffer_bytes, unique_key, limit_key, tag, armed, executes,
    digest, run, held_key, due_at,
    created_at, updated_at)
SELECT :id, :queue, :name, :spec, :command, :handler, :priority, :status, :max_retries, :retry,
       :max_lapses, :timeout_seconds, :estimated_runtime_seconds, :max_termination_seconds, :cpu,
       :memory_bytes, :gpu, :labels, :nodes, :exclusive, :buffer_bytes, :unique_key,
       :limit_key, :tag, :armed, :executes, :digest, :run,
       :unique_key, CASE WHEN :delay_seconds > 0 THEN clock.now + :delay_seconds END,
       clock.now, clock.now
  FROM (SELECT now_seconds() AS now) AS clock
 WHERE true
    ON CONFLICT (id) DO NOTHING
RETURNING id, seq;
