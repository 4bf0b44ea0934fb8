"""The life of a task: status table, leases, retries, dependencies, resources and limits."""
