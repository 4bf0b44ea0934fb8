-- Objects, scheduler: those of these that are there.
SELECT name, facts, posted_at, posted_by
  FROM tidewheel.buffer_object
 WHERE name = ANY (:names::text[])
 ORDER BY name;
