"""Chooses the class that stands behind each port; no other package knows it.

Command line, clients and demo ask here for a store, a worker or a monitor.
"""
