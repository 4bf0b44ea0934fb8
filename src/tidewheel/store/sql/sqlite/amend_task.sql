-- Amend: change what a waiting task asks for; NULL keeps.
UPDATE task
   SET name = coalesce(:name, name),
       command = coalesce(:command, command),
       executes = executes OR :command IS NOT NULL,
       max_retries = coalesce(:max_retries, max_retries),
       estimated_runtime_seconds = coalesce(:estimated_runtime_seconds, estimated_runtime_seconds),
       max_termination_seconds = coalesce(:max_termination_seconds, max_termination_seconds),
       cpu = CASE WHEN :resources THEN :cpu ELSE cpu END,
       memory_bytes = CASE WHEN :resources THEN :memory_bytes ELSE memory_bytes END,
       gpu = CASE WHEN :resources THEN :gpu ELSE gpu END,
       labels = CASE WHEN :resources THEN :labels ELSE labels END,
       nodes = CASE WHEN :resources THEN :nodes ELSE nodes END,
       exclusive = CASE WHEN :resources THEN :exclusive ELSE exclusive END,
       buffer_bytes = CASE WHEN :resources THEN :buffer_bytes ELSE buffer_bytes END,
       updated_at = now_seconds()
 WHERE seq = :seq;
