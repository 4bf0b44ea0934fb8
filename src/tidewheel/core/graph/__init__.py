"""The definition of a workflow and the immutable graph that it compiles to."""
