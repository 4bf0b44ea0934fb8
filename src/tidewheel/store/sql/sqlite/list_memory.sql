-- Scheduler, looking: what a run remembers.
-- By the index of what is not forgotten: the planner, who knows no counts, would read everything.
SELECT body FROM memory INDEXED BY memory_known
 WHERE run = :run AND NOT forgotten ORDER BY point, name;
