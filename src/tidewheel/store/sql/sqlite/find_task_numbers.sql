-- Waiting clients: the numbers of many tasks at once.
SELECT id, seq FROM task WHERE id IN (SELECT value FROM json_each(:ids));
