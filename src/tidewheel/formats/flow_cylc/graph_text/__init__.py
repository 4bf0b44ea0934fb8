"""Reads the text of `[scheduling][graph]`: tokens, chains, then arrows of the definition."""
