"""Keeps tasks and runs: one set of transactions over SQLite or PostgreSQL.

``operations/`` each operation as one transaction, written once for every database
``sql/``        one SQL statement per file: in ``common/`` for both databases, or for each
``migrations/`` the schema, forward only
``store.py``    the Store port on top of them: the list of operations
"""
