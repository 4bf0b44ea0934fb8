"""Holds the Protocols of what services need of the outside world, and know nothing else of."""
