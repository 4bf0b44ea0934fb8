"""Where tasks are kept: one set of transactions over memory, SQLite or PostgreSQL.

``scripts/``    each operation as one transaction, written once for every database
``queries/``    one SQL statement per file and dialect; ``memory_*.py`` says the same in Python
``migrations/`` the schema, forward only
``facade.py``   the TaskStore port on top of them
"""
