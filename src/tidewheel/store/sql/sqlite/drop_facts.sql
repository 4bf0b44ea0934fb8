-- Scheduler: a chain that leads nowhere any more.
DELETE FROM run_fact WHERE run = :run AND kind = :kind AND key = :key;
