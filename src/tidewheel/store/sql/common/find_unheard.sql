-- Scheduler: whether something of these tasks waits to be heard by their run.
SELECT seq FROM tidewheel.event WHERE run = :run AND task_id = ANY (:ids::text[]) LIMIT 1;
