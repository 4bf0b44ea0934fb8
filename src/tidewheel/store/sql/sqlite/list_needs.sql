-- Blocks: what these runs wait for, and how that is now.
SELECT need.run, parent.name, need.condition, parent.status, parent.batch > 0,
       parent.given IS NOT NULL OR coalesce(parent.deadline_at > now_seconds(), false)
  FROM run_need AS need JOIN run AS parent ON parent.number = need.parent
 WHERE need.run IN (SELECT value FROM json_each(:runs))
 ORDER BY need.run, parent.number, need.condition;
