"""Describes runs as they are stored: what is asked of them, and what is seen of them."""
