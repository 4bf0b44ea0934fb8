-- Objects: by name, behind a name.
SELECT name, facts, posted_at, posted_by
  FROM tidewheel.buffer_object
 WHERE name COLLATE "C" > :after
 ORDER BY name COLLATE "C" LIMIT :count;
