-- Objects: these are there from now on; what is known of them is what was said last.
INSERT INTO tidewheel.buffer_object (name, facts, posted_at, posted_by)
SELECT name, facts, tidewheel.now_seconds(), :who
  FROM json_to_recordset(:objects::json) AS posted (name text, facts text)
 WHERE true
    ON CONFLICT (name) DO UPDATE
   SET facts = excluded.facts, posted_at = excluded.posted_at, posted_by = excluded.posted_by;
