-- Submit, look: what a client said of a task but for its id and spec, and the status.
queue, name, command, priority, status, max_retries, retry, max_lapses, timeout_seconds,
estimated_runtime_seconds, max_termination_seconds, unique_key, tag, environment, armed,
{claim_terms}
