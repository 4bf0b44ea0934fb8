-- Objects, scheduler: those of these that are there.
SELECT name, facts, posted_at, posted_by
  FROM buffer_object
 WHERE name IN (SELECT value FROM json_each(:names))
 ORDER BY name;
