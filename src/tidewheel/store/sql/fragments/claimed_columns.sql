-- Claim, adopt: what a worker needs to execute a task.
seq, id, queue, name, attempt, spec, command, priority, timeout_seconds, max_termination_seconds,
run, environment, graph, {claim_terms}
