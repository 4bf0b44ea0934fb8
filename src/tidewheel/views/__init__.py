"""Shows runs as documents: what people, jobs and programs see of a run, by the store alone."""
