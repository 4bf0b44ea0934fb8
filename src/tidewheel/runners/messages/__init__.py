"""Carries messages of jobs: to a socket of the worker, into a file (the spool), or by HTTP."""
