"""REST for people and machines: one table of routes, each with its guard."""
