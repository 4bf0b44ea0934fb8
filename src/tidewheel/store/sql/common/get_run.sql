-- Everybody: a run by its number.
SELECT number, name, workflow, definition, options, folder, queue, status, reason, epoch, batch,
       host, boot_id, pid, process_started, deadline_at, created_at, updated_at, ended_at, given
  FROM tidewheel.run
 WHERE number = :run AND status <> 'deleted';
