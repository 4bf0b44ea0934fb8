"""The one place that knows which class stands behind each port.

Command line, clients and demo ask here for a store, a worker or a monitor.
"""
