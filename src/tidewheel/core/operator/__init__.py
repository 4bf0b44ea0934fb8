"""Runs as they are stored and spoken to: what is asked of them, and what is seen of them."""
