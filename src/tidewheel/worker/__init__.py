"""A worker: what it claims, does, reports and leaves behind."""
