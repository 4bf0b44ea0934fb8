-- Submit, look: what a client said of a task, and the status.
id, queue, name, spec, command, priority, status, max_retries, retry, max_lapses, timeout_seconds,
estimated_runtime_seconds, max_termination_seconds, unique_key, tag, environment, armed,
{claim_terms}
