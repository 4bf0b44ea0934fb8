"""Tells people and programs elsewhere what happens in the runs of a store."""
