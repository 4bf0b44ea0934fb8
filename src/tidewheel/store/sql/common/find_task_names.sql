-- Submit, amend: who holds these names.
SELECT name, id FROM tidewheel.task WHERE name IS NOT NULL AND name = ANY (:names::text[]);
