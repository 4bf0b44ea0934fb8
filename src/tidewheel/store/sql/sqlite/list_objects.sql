-- Objects: by name, behind a name.
SELECT name, facts, posted_at, posted_by
  FROM buffer_object
 WHERE name > :after
 ORDER BY name LIMIT :count;
