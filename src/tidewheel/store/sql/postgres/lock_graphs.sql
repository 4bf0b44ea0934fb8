-- Everybody who ends or ties tasks: one lock per task graph, in one order. SQLite has one writer.
SELECT graph, pg_advisory_xact_lock(hashtextextended('tidewheel.graph', graph))
  FROM (SELECT DISTINCT graph FROM tidewheel.task
         WHERE graph IS NOT NULL AND id = ANY (:ids::text[])
         ORDER BY graph) AS wanted;
