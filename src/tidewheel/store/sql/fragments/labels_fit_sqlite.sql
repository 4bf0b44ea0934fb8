-- Claim on SQLite: the worker has every label that a ready task asks for.
(ready.labels IS NULL OR NOT EXISTS (
                SELECT 1 FROM json_each(ready.labels) AS asked
                 WHERE asked.value NOT IN (SELECT value FROM json_each(:labels))))
