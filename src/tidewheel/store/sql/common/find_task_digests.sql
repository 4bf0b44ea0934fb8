-- Submit: which ids are stored already, and with what body.
SELECT id, digest FROM tidewheel.task WHERE id = ANY (:ids::text[]);
