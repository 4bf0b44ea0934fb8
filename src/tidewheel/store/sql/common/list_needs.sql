-- Blocks: what these runs wait for, and how that is now.
SELECT need.run, parent.name AS parent, need.condition, parent.status, parent.batch > 0 AS begun,
       parent.given IS NOT NULL OR coalesce(parent.deadline_at > tidewheel.now_seconds(), false) AS going, parent.reason
  FROM tidewheel.run_need AS need JOIN tidewheel.run AS parent ON parent.number = need.parent
 WHERE need.run = ANY (:runs::bigint[])
 ORDER BY need.run, parent.number, need.condition;
