-- Looking: runs of one workflow, or all, newest first.
SELECT number, name, workflow, definition, options, folder, queue, status, reason, epoch, batch,
       host, boot_id, pid, process_started, deadline_at, created_at, updated_at, ended_at, given
  FROM tidewheel.run
 WHERE (:workflow::text IS NULL OR workflow = :workflow::text) AND status <> 'deleted'
   AND (:before::bigint IS NULL OR number < :before::bigint)
 ORDER BY number DESC LIMIT :count;
