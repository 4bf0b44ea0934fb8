"""Holds the types that travel over HTTP: checked on the way in, described by OpenAPI."""
