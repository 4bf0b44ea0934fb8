-- Verify T12: a unique key is held exactly until its task has ended.
SELECT id, CASE WHEN held_key IS NULL THEN 'it does not hold its unique key'
                ELSE status || ', but it holds the unique key ' || held_key END
  FROM tidewheel.task
 WHERE held_key IS DISTINCT FROM CASE WHEN status NOT IN ('succeeded', 'failed', 'cancelled') THEN unique_key END
 ORDER BY seq;
