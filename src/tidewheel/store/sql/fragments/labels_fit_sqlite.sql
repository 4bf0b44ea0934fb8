-- Claim on SQLite: the worker has every label that a ready task asks for, and the nodes of each flavour.
(ready.labels IS NULL OR NOT EXISTS (
                SELECT 1 FROM json_each(ready.labels) AS asked
                 WHERE asked.value NOT IN (SELECT value FROM json_each(:labels))))
       AND (ready.flavours IS NULL OR NOT EXISTS (
                SELECT 1 FROM json_each(ready.flavours) AS asked
                  LEFT JOIN json_each(:flavours) AS offered ON offered.value ->> 0 = asked.value ->> 0
                 WHERE asked.value ->> 1 > coalesce(offered.value ->> 1, 0)
                    OR asked.value ->> 2 > coalesce(offered.value ->> 2, 0)))
