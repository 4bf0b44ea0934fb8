-- Looking: runs of one workflow, or all, newest first.
SELECT number, name, workflow, definition, options, folder, queue, status, reason, epoch, batch,
       host, boot_id, pid, process_started, deadline_at, created_at, updated_at, ended_at, given
  FROM run
 WHERE (:workflow IS NULL OR workflow = :workflow) AND status <> 'deleted'
   AND (:before IS NULL OR number < :before)
 ORDER BY number DESC LIMIT :count;
