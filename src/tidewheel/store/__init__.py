"""Keeps tasks and runs: one set of transactions over SQLite or PostgreSQL.

``operations/`` each operation as one transaction, written once for every database
``sql/``        one SQL statement per file and dialect
``migrations/`` the schema, forward only
``facade.py``   the TaskStore port on top of them
"""
