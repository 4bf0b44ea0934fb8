"""Implements a worker: what it claims, does, reports and leaves behind."""
