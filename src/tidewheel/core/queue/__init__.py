"""Decides on the life of a task: status, leases, retries, dependencies, resources, limits."""
