-- Everybody: the database's clock.
SELECT now_seconds();
