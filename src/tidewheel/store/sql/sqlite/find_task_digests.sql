-- Submit: which ids are stored already, and with what body.
SELECT id, digest FROM task WHERE id IN (SELECT value FROM json_each(:ids));
