-- Scheduler, looking, verify: a task of a run is a job of its graph, and not code such as a handler.
task.tag IS NULL
