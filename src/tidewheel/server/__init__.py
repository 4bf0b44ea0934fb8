"""Offers REST to people and machines: one table of routes, each with its guard."""
