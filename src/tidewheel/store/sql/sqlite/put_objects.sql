-- Objects: these are there from now on; what is known of them is what was said last.
INSERT INTO buffer_object (name, facts, posted_at, posted_by)
SELECT value ->> 'name', value ->> 'facts', now_seconds(), :who FROM json_each(:objects)
 WHERE true
    ON CONFLICT (name) DO UPDATE
   SET facts = excluded.facts, posted_at = excluded.posted_at, posted_by = excluded.posted_by;
