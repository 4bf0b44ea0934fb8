"""Advances runs: reads what happened, decides, and writes the decisions in batches."""
