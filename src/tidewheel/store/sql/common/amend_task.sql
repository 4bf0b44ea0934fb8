-- Amend: change what a waiting task asks for; NULL keeps.
UPDATE tidewheel.task
   SET name = coalesce(:name::text, name),
       command = coalesce(:command::text, command),
       executes = executes OR :command::text IS NOT NULL,
       max_retries = coalesce(:max_retries::integer, max_retries),
       estimated_runtime_seconds
           = coalesce(:estimated_runtime_seconds::float8, estimated_runtime_seconds),
       max_termination_seconds = coalesce(:max_termination_seconds::float8, max_termination_seconds),
       cpu = CASE WHEN :resources::boolean THEN :cpu::float8 ELSE cpu END,
       memory_bytes = CASE WHEN :resources::boolean THEN :memory_bytes::bigint ELSE memory_bytes END,
       gpu = CASE WHEN :resources::boolean THEN :gpu::integer ELSE gpu END,
       labels = CASE WHEN :resources::boolean THEN :labels::text ELSE labels END,
       nodes = CASE WHEN :resources::boolean THEN :nodes::integer ELSE nodes END,
       exclusive = CASE WHEN :resources::boolean THEN :exclusive::boolean ELSE exclusive END,
       buffer_bytes = CASE WHEN :resources::boolean THEN :buffer_bytes::bigint ELSE buffer_bytes END,
       flavours = CASE WHEN :resources::boolean THEN :flavours::text ELSE flavours END,
       updated_at = tidewheel.now_seconds()
 WHERE seq = :seq;
