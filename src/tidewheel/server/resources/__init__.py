"""Holds the handlers of the server's routes, one module for each kind of thing."""
