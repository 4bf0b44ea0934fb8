"""Defines what a workflow's definition holds, and the immutable graph that it compiles to."""
