-- Queues: those of the newest tasks, which may have ended.
SELECT DISTINCT queue
  FROM (SELECT queue FROM tidewheel.task ORDER BY seq DESC LIMIT :count) AS newest;
