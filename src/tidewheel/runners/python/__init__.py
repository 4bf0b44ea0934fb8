"""Calls functions of Python: handlers of tasks inside the worker, and xtriggers in a child."""
