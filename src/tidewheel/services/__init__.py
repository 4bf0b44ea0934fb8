"""Holds the loops of tidewheel, which have one shape (`service.py`), and what answers requests.

What answers stands between a store and those who ask: runs, registry, blocks, definitions.
"""
