"""Holds the Protocols by which services know the outside world: clock, runners, stores."""
