-- Everybody who decides, monitor: the task names its runner, which prepares its job before that starts.
coalesce(replace(task.labels, '"runner:', '') <> task.labels, false)
