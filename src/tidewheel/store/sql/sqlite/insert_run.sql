-- Run: a new one, which nobody drives yet.
INSERT INTO run (name, workflow, definition, options, folder, queue, given, request, priority, status, created_at, updated_at)
VALUES (:name, :workflow, :definition, :options, :folder, :queue, :given, :request, :priority, 'created', now_seconds(), now_seconds())
RETURNING number;
