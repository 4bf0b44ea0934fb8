-- Waiting clients: the numbers of many tasks at once.
SELECT id, seq FROM tidewheel.task WHERE id = ANY (:ids::text[]);
