"""Pictures of a graph: one module for each step from the tasks to the page."""
