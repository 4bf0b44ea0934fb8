-- List: a page of running or cancelling tasks, newest first.
SELECT task.seq FROM tidewheel.lease JOIN tidewheel.task ON task.seq = lease.task_seq
 WHERE task.status = %(status)s AND lease.task_seq < %(before)s
   AND (%(queue)s::text IS NULL OR task.queue = %(queue)s::text)
   AND (%(worker)s::text IS NULL OR task.owner = %(worker)s::text)
   AND (%(tag)s::text IS NULL OR task.tag = %(tag)s::text)
   AND (%(name)s::text IS NULL OR task.name = %(name)s::text)
   AND (%(runtime_max)s::float8 IS NULL OR task.estimated_runtime_seconds <= %(runtime_max)s::float8)
   AND (%(memory_min)s::bigint IS NULL OR task.memory_bytes >= %(memory_min)s::bigint)
 ORDER BY lease.task_seq DESC LIMIT %(count)s;
