-- Verify: whether the database itself is sound; PostgreSQL checks its own pages.
PRAGMA integrity_check(10);
