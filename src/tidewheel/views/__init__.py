"""Shows runs to people, jobs and programs, as documents made from the store alone."""
