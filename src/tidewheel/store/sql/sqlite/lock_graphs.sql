-- Everybody who ends or ties tasks: one lock per task graph, in one order. SQLite has one writer.
SELECT DISTINCT graph FROM task
 WHERE graph IS NOT NULL AND id IN (SELECT value FROM json_each(:ids));
