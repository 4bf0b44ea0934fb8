-- Amend: change what a waiting task asks for; NULL keeps.
UPDATE tidewheel.task
   SET name = coalesce(%(name)s::text, name),
       command = coalesce(%(command)s::text, command),
       executes = executes OR %(command)s::text IS NOT NULL,
       max_retries = coalesce(%(max_retries)s::integer, max_retries),
       estimated_runtime_seconds
           = coalesce(%(estimated_runtime_seconds)s::float8, estimated_runtime_seconds),
       max_termination_seconds = coalesce(%(max_termination_seconds)s::float8, max_termination_seconds),
       cpu = CASE WHEN %(resources)s::boolean THEN %(cpu)s::float8 ELSE cpu END,
       memory_bytes = CASE WHEN %(resources)s::boolean THEN %(memory_bytes)s::bigint ELSE memory_bytes END,
       gpu = CASE WHEN %(resources)s::boolean THEN %(gpu)s::integer ELSE gpu END,
       labels = CASE WHEN %(resources)s::boolean THEN %(labels)s::text ELSE labels END,
       nodes = CASE WHEN %(resources)s::boolean THEN %(nodes)s::integer ELSE nodes END,
       exclusive = CASE WHEN %(resources)s::boolean THEN %(exclusive)s::boolean ELSE exclusive END,
       buffer_bytes = CASE WHEN %(resources)s::boolean THEN %(buffer_bytes)s::bigint ELSE buffer_bytes END,
       updated_at = tidewheel.now_seconds()
 WHERE seq = %(seq)s;
