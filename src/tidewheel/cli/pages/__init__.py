"""Holds the pages: what commands print, for people and for programs."""
