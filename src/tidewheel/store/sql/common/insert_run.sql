-- Run: a new one, which nobody drives yet.
INSERT INTO tidewheel.run (name, workflow, definition, options, folder, queue, given, sees, parent, request, priority, status, created_at, updated_at)
VALUES (:name, :workflow, :definition, :options, :folder, :queue, :given, :sees, :parent, :request, :priority, 'created', tidewheel.now_seconds(), tidewheel.now_seconds())
RETURNING number;
