-- Retention: a task that has ended belongs to no run, and nothing live depends on it.
task.run IS NULL
    AND NOT EXISTS (SELECT 1 FROM tidewheel.dependency JOIN tidewheel.task AS child ON child.seq = dependency.child
                     WHERE dependency.parent = task.seq
                       AND child.status NOT IN ('succeeded', 'failed', 'cancelled'))
