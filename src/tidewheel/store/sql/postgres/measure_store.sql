-- Server: how the database itself is, for those who watch: dead rows, connections, old transactions.
SELECT 'dead_rows', relname::text, n_dead_tup::float8
  FROM pg_stat_user_tables
 WHERE schemaname = 'tidewheel' AND relname IN ('task', 'ready', 'lease', 'dependency', 'event', 'pool')
UNION ALL
SELECT 'connections', coalesce(state, 'none'), count(*)::float8
  FROM pg_stat_activity WHERE datname = current_database() GROUP BY state
UNION ALL
SELECT 'oldest_transaction_seconds', '', coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8
  FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
