-- Everybody who looks at runs: all that is known of one.
number, name, workflow, definition, options, folder, queue, status, reason, epoch, batch,
       host, boot_id, pid, process_started, deadline_at, created_at, updated_at, ended_at, given, sees, parent
