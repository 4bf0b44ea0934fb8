"""Runners turn an attempt into processes, containers, Slurm jobs or calls of functions."""
