-- List: a page of ready tasks, newest first.
SELECT task.seq FROM tidewheel.ready JOIN tidewheel.task ON task.seq = ready.task_seq
 WHERE ready.task_seq < %(before)s AND (%(queue)s::text IS NULL OR ready.queue = %(queue)s::text)
   AND (%(queue)s::text IS NULL OR task.queue = %(queue)s::text)
   AND (%(worker)s::text IS NULL OR task.owner = %(worker)s::text)
   AND (%(tag)s::text IS NULL OR task.tag = %(tag)s::text)
   AND (%(name)s::text IS NULL OR task.name = %(name)s::text)
   AND (%(runtime_max)s::float8 IS NULL OR task.estimated_runtime_seconds <= %(runtime_max)s::float8)
   AND (%(memory_min)s::bigint IS NULL OR task.memory_bytes >= %(memory_min)s::bigint)
 ORDER BY ready.task_seq DESC LIMIT %(count)s;
