"""Holds the requests that the server answers, one module per kind of thing."""
