-- List: a page of all tasks, newest first.
SELECT seq FROM tidewheel.task
 WHERE seq < %(before)s
   AND (%(any_status)s::boolean OR status = ANY (%(statuses)s::text[]))
   AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
   AND (%(worker)s::text IS NULL OR owner = %(worker)s::text)
   AND (%(tag)s::text IS NULL OR tag = %(tag)s::text)
   AND (%(name)s::text IS NULL OR name = %(name)s::text)
   AND (%(runtime_max)s::float8 IS NULL OR estimated_runtime_seconds <= %(runtime_max)s::float8)
   AND (%(memory_min)s::bigint IS NULL OR memory_bytes >= %(memory_min)s::bigint)
 ORDER BY seq DESC LIMIT %(count)s;
