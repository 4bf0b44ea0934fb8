"""Carries what jobs say: a socket of the worker, a spool behind it, HTTP to a server."""
