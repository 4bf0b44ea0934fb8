"""`cylc` inside jobs and event handlers: calls of existing scripts, translated."""
