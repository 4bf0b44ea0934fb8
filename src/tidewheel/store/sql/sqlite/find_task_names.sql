-- Submit, amend: who holds these names.
SELECT name, id FROM task WHERE name IS NOT NULL AND name IN (SELECT value FROM json_each(:names));
