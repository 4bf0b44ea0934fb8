-- List, cancel by filter: what a filter asks of a task beside its status.
(:queue::text IS NULL OR task.queue = :queue::text)
   AND (:worker::text IS NULL OR task.owner = :worker::text)
   AND (:tag::text IS NULL OR task.tag = :tag::text)
   AND (:name::text IS NULL OR task.name = :name::text)
   AND (:estimated_runtime_seconds_max::float8 IS NULL
        OR task.estimated_runtime_seconds <= :estimated_runtime_seconds_max::float8)
   AND (:memory_bytes_min::bigint IS NULL OR task.memory_bytes >= :memory_bytes_min::bigint)
   AND (:jobs::boolean IS NOT FALSE OR task.run IS NULL)
